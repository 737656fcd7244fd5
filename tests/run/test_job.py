import hashlib
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from prony.base.model import read_model
from prony.measure.result import Result
from prony.recipe.deployment import EnvVar, ModelFile, ModelRef
from prony.run import procfs
from tests.conftest import optional_part
from tests.run.conftest import Bench
from tests.run.kit import SUPERVISOR, ended, eventually, make_deployment, make_job


def starts(path: Path) -> list[int]:
    """Return the ports of all starts of a tiny server."""
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_one_server_start_serves_all_folders_and_each_gets_its_own_result(bench: Bench) -> None:
    deployment = make_deployment("--starts", str(bench.directory / "starts"))
    folders = [bench.folder(make_job(deployment, concurrency)) for concurrency in (1, 2)]
    assert bench.run(*folders).returncode == 0
    ports = starts(bench.directory / "starts")
    assert len(ports) == 1
    for folder in folders:
        assert ended(folder).status == "succeeded"
        result = read_model(folder.result_file, Result)
        row, provenance = result.row, result.row.provenance
        assert row.key == folder.job().key
        assert row.value("requests_completed") == 4
        assert row.value("output_tokens") == 16
        assert row.value("ttft", "mean") is not None
        assert row.hardware == "cpu"
        assert provenance is not None
        assert provenance.engine_version == "tiny-1.0"
        assert provenance.commands[0].command == deployment.roles[0].argv
        assert provenance.model == deployment.model
        assert provenance.client is not None and provenance.client.reads > 0
        assert {artifact.name for artifact in result.artifacts} >= {"job.json", "events.npz"}
        assert any(artifact.name.startswith("logs/") for artifact in result.artifacts) == (folder is folders[0])
        for artifact in result.artifacts:
            content = (folder.path / artifact.name).read_bytes()
            assert hashlib.sha256(content).hexdigest() == artifact.sha256
    assert (folders[1].logs / "after" / "agg-0.log").read_text() == "goodbye\n"
    assert bench.survivors() == ()
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", ports[0]))


def test_server_death_at_start_fails_every_job_of_the_launch_with_its_last_words(bench: Bench) -> None:
    deployment = make_deployment("--die-at-start")
    folders = [bench.folder(make_job(deployment, concurrency)) for concurrency in (1, 2)]
    assert bench.run(*folders).returncode == 3
    for folder in folders:
        record = ended(folder)
        assert (record.status, record.fault, record.exit_code) == ("failed", "launch", 3)
        assert "exited with code 7" in record.message
        assert "error: no such device" in record.message
        assert "agg-0.log" in record.fix


def test_server_that_hangs_at_start_fails_when_the_probe_times_out(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment("--hang", probe_s=0.5)))
    assert bench.run(folder).returncode == 3
    assert "GET /health was not answered with 200 within 0.5 s" in ended(folder).message


def test_server_death_under_load_fails_that_job_and_the_next_gets_a_fresh_server(bench: Bench) -> None:
    deployment = make_deployment("--die-after", "5", "--starts", str(bench.directory / "starts"))
    dying = bench.folder(make_job(deployment, 1, requests=20))
    living = bench.folder(make_job(deployment, 2, requests=4))
    assert bench.run(dying, living).returncode == 3
    record = ended(dying)
    assert (record.status, record.fault) == ("failed", "launch")
    assert "exited with code 41 under load" in record.message
    assert "out of imaginary memory" in record.message
    assert ended(living).status == "succeeded"
    assert len(starts(bench.directory / "starts")) == 2


def test_time_limit_ends_a_job_as_timeout_before_the_limit(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment("--delay", "5"), time_limit_s=1.5))
    assert bench.run(folder).returncode == 3
    record = ended(folder)
    assert record.status == "timeout"
    assert "time limit of 1.5 s" in record.message


def test_requests_that_fail_make_the_result_invalid(bench: Bench) -> None:
    job = make_job(make_deployment("--delay", "5"), requests=1)
    job = job.model_copy(update={"load": job.load.model_copy(update={"request_timeout_s": 0.3})})
    folder = bench.folder(job)
    assert bench.run(folder).returncode == 4
    record = ended(folder)
    assert (record.status, record.fault) == ("invalid", "measurement")
    assert record.message
    assert not read_model(folder.result_file, Result).row.valid


def test_killed_client_is_told_apart_from_a_failed_server(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment("--delay", "5")))
    with bench.start(folder) as supervisor:
        clients = lambda: [  # noqa: E731
            pid for pid in procfs.children(supervisor.pid) if b"prony.load.worker" in _command_line(pid)
        ]
        eventually(lambda: bool(clients()))
        os.kill(clients()[0], signal.SIGKILL)
        supervisor.communicate(timeout=20)
        assert supervisor.returncode == 3
    record = ended(folder)
    assert record.fault == "infrastructure"
    assert "client was killed by SIGKILL" in record.message


def test_grandchild_that_escaped_with_setsid_and_ignores_term_is_killed(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment("--escape", "--ignore-term", "--delay", "0.2")))
    with bench.start(folder) as supervisor:
        eventually(lambda: len(bench.survivors()) >= 3)
        supervisor.communicate(timeout=25)
        assert supervisor.returncode == 0
    assert bench.survivors() == ()


def test_term_cancels_all_jobs_and_leaves_no_process(bench: Bench) -> None:
    deployment = make_deployment("--delay", "5")
    folders = [bench.folder(make_job(deployment, concurrency)) for concurrency in (1, 2)]
    with bench.start(*folders) as supervisor:
        eventually(lambda: (progress := folders[0].progress()) is not None and progress.phase != "starting")
        supervisor.send_signal(signal.SIGTERM)
        supervisor.communicate(timeout=20)
        assert supervisor.returncode == 130
    assert [ended(folder).status for folder in folders] == ["cancelled", "cancelled"]
    assert bench.survivors() == ()


def test_kill_of_the_supervisor_leaves_nothing_after_the_next_one_started(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment("--escape", "--delay", "0.2")))
    with bench.start(folder) as supervisor:
        eventually(lambda: folder.logs.exists() and len(bench.survivors()) >= 3)
        before = set(bench.survivors())
        supervisor.kill()
        supervisor.communicate()
    eventually(lambda: all(b"sleep" in _command_line(pid) for pid in bench.survivors()))
    assert bench.survivors()
    assert folder.exit_record() is None
    assert bench.run(folder).returncode == 0
    assert ended(folder).attempt == 2
    assert not before & set(bench.survivors())
    assert (folder.path / "attempts" / "1" / "logs").exists()


def test_running_a_finished_folder_again_keeps_the_old_attempt(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment()))
    assert bench.run(folder).returncode == 0
    first = folder.result_file.read_bytes()
    assert bench.run(folder).returncode == 0
    assert ended(folder).attempt == 2
    assert (folder.path / "attempts" / "1" / "result.json").read_bytes() == first
    again = bench.run(folder, attempt=2)
    assert again.returncode == 3
    assert "attempt 2 has been made already" in again.stderr
    assert ended(folder).attempt == 2


def test_folder_that_is_being_run_is_refused(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment("--delay", "0.6"), requests=2))
    with bench.start(folder) as supervisor:
        eventually(lambda: folder.progress() is not None)
        second = bench.run(folder)
        assert second.returncode == 3
        assert f"is being run by process {supervisor.pid}" in second.stderr
        supervisor.communicate(timeout=20)
        assert supervisor.returncode == 0
    assert ended(folder).attempt == 1


def test_folders_that_need_different_servers_are_refused(bench: Bench) -> None:
    first, second = bench.folder(make_job(make_deployment())), bench.folder(make_job(make_deployment("--delay", "1")))
    refused = bench.run(first, second)
    assert refused.returncode == 2
    assert "needs another server" in refused.stderr


def test_folder_without_a_job_is_refused(bench: Bench) -> None:
    refused = subprocess.run([*SUPERVISOR, str(bench.directory)], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "job.json: no such file" in refused.stderr


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "No such file"), (b"GGUF", "is truncated: expected 8 bytes, found 4"), (b"GGUF0000", "is corrupt")],
)
def test_wrong_model_file_is_named_before_anything_starts(bench: Bench, content: bytes | None, expected: str) -> None:
    path = bench.directory / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    file = ModelFile(name=path.name, size_bytes=8, sha256=hashlib.sha256(b"GGUF1234").hexdigest())
    model = ModelRef(id="tiny", location=f"path:{bench.directory}", files=(file,))
    folder = bench.folder(make_job(make_deployment("--starts", str(bench.directory / "starts"), model=model)))
    assert bench.run(folder).returncode == 3
    record = ended(folder)
    assert record.fault == "launch"
    assert str(path) in record.message
    assert expected in record.message
    assert starts(bench.directory / "starts") == []


def test_program_that_is_not_there_is_named(bench: Bench) -> None:
    deployment = make_deployment()
    role = deployment.roles[0].model_copy(update={"argv": ("/nowhere/engine", "--port", "{port:http}")})
    folder = bench.folder(make_job(deployment.model_copy(update={"roles": (role,)})))
    assert bench.run(folder).returncode == 3
    assert "'/nowhere/engine' cannot be started: No such file or directory" in ended(folder).message


def test_secret_is_a_reference_in_the_folder_and_blank_in_logs_and_messages(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_TOKEN", "hunter2hunter2")
    env = (EnvVar(name="TINY_TOKEN", value="{env:OUR_TOKEN}"),)
    folder = bench.folder(make_job(make_deployment("--die-at-start", env=env)))
    bench.run(folder)
    assert "password [redacted]" in (folder.logs / "agg-0.log").read_text()
    assert "password [redacted]" in ended(folder).message
    for path in folder.path.rglob("*.*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes(), path


def test_full_disk_is_told_and_still_leaves_an_exit_record(bench: Bench, tmp_path: Path) -> None:
    optional_part(
        shutil.which("unshare") is not None and _may_mount(), "the right to mount a file system (unshare -rm)"
    )
    source = bench.folder(make_job(make_deployment(), requests=40))
    place = tmp_path / "small"
    place.mkdir()
    script = (
        'mount -t tmpfs -o size=72k none "$1" && mkdir -p "$1/jobs/a" && cp "$2" "$1/jobs/a/job.json"'
        ' && head -c 28k /dev/zero > "$1/filler"; kept="$3/exit.json"; shift 3; "$@"; echo "code $?"; cat "$kept"'
        ' ; ls -A "${kept%/*}"'
    )
    folder = str(place / "jobs" / "a")
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(place), str(source.job_file), folder]
    done = subprocess.run([*command, *SUPERVISOR, folder], capture_output=True, text=True, timeout=30, check=False)
    told = done.stdout + done.stderr
    assert "code 3" in told
    assert '"status": "failed"' in told
    assert "No space left on device" in told
    assert ".partial" not in told
    assert "Traceback" not in told


def _may_mount() -> bool:
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_file_size_limit_is_told_and_still_leaves_an_exit_record(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment(), requests=40))
    command = ["prlimit", "--fsize=2500", *bench.command(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 3
    assert "File too large" in ended(folder).message
    assert "Traceback" not in done.stdout + done.stderr


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
