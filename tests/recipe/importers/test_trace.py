"""What a launch script does is recorded as if all that it needs were there: devices, checkpoints, servers, a client."""

import os
import subprocess
from pathlib import Path

import pytest

from prony.recipe.importers.trace import Trace, trace
from tests.conftest import REPOSITORY, optional_part

SCRIPTS = REPOSITORY / "tests" / "recipe" / "importers" / "scripts"
_OWN = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
_ALLOWED = not subprocess.run(
    ["unshare", *_OWN, "--mount", "--net", "--pid", "--fork", "true"], capture_output=True, check=False
).returncode
_GIVEN = {"MODEL": "org/model", "TP": "8", "CONC": "4", "PORT": "8888"}


@pytest.fixture(autouse=True)
def namespaces() -> None:
    optional_part(_ALLOWED, "namespaces (unshare)")


def traced(folder: Path, text: str, **given: str) -> Trace:
    (folder / "run.sh").write_text(text)
    return trace(folder / "run.sh", folder, {**_GIVEN, **given}, 20.0)


def test_a_careful_script_is_followed_to_its_client() -> None:
    found = trace(SCRIPTS / "strict.sh", SCRIPTS, _GIVEN, 20.0)
    assert found.code == 0, found.said
    calls = {call.argv[0]: call for call in found.calls}
    assert calls["check_env_vars"].argv == ("check_env_vars", "MODEL", "TP", "NOT_GIVEN")
    server = calls["python3"]
    assert server.argv[2:] == (
        *("sglang.launch_server", "--model-path", "org/model", "--tp", "8"),
        *("--chunked-prefill-size", "65536"),
    )
    assert dict(server.env) == {"OWN_STEP": "ran", "GPUS": "8", "SUM": "7", "MORE": "5"}
    assert calls["run_benchmark_serving"].argv == ("run_benchmark_serving", "--max-concurrency", "4")


def test_a_script_without_its_library_still_takes_the_branch_of_its_point(tmp_path: Path) -> None:
    text = (
        "source /nowhere/lib.sh\nwait_for_server_ready\n"
        "if require_agentic_kv_offload_backend native; then A=(--kv-offloading-size 9); fi\n"
        'vllm serve "$MODEL" "${A[@]}"\n'
    )
    (plain,) = [call.argv for call in traced(tmp_path, text).calls if call.argv[0] == "vllm"]
    assert plain == ("vllm", "serve", "org/model")
    offload = {"KV_OFFLOADING": "dram", "KV_OFFLOAD_BACKEND": "native"}
    (more,) = [call.argv for call in traced(tmp_path, text, **offload).calls if call.argv[0] == "vllm"]
    assert more == ("vllm", "serve", "org/model", "--kv-offloading-size", "9")
    other = traced(tmp_path, text, KV_OFFLOADING="dram", KV_OFFLOAD_BACKEND="lmcache")
    assert other.code == 1 and "is not native" in other.said


def test_calls_at_once_are_kept_apart(tmp_path: Path) -> None:
    text = 'for i in $(seq 20); do vllm serve "$MODEL" --port $i --words "a b" "c\nd" "" & done; wait\n'
    found = traced(tmp_path, text)
    assert sorted(int(call.argv[4]) for call in found.calls) == list(range(1, 21))
    assert {call.argv[5:] for call in found.calls} == {("--words", "a b", "c\nd", "")}


def test_files_that_a_launch_names_are_kept_with_it(tmp_path: Path) -> None:
    text = "printf 'a: 1\\n' > options.yml; trtllm-serve m --config=options.yml; rm options.yml; vllm serve m\n"
    first, second = traced(tmp_path, text).calls
    assert dict(first.files) == {"options.yml": "a: 1\n"} and second.files == {}


def test_wrappers_are_looked_through(tmp_path: Path) -> None:
    text = "export A=1; nohup numactl --interleave=all --cpunodebind 0 vllm serve m > log 2>&1 &\nwait\n"
    (call,) = traced(tmp_path, text).calls
    assert call.argv == ("vllm", "serve", "m") and dict(call.env) == {"A": "1"}
