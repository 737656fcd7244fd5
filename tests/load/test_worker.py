"""The client as a process: what it leaves behind, and how it ends."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prony.base.model import read_model, write_model
from prony.load import worker
from prony.load.progress import Progress, write_progress
from prony.load.request import LoadRequest, Target
from prony.measure.eventlog import Fault
from prony.measure.storage import read_log
from prony.spec.load import LoadPlan
from tests.load.conftest import Truth, free_port
from tests.load.load import faults


def start(folder: Path, url: str, limit_files: int = 0, events: str = "", **plan: object) -> subprocess.Popen[str]:
    load = LoadPlan.model_validate({"isl": 16, "osl": 8, "concurrency": 2, "requests": 6, **plan})
    request = LoadRequest(
        target=Target(url=url, model="m"),
        load=load,
        events_file=events or str(folder / "events.npz"),
        progress_file=str(folder / "progress.json"),
    )
    write_model(folder / "request.json", request)

    argv = [sys.executable, "-m", "prony.load.worker", str(folder / "request.json")]
    if limit_files:
        argv = ["/bin/sh", "-c", f'ulimit -n {limit_files}; exec "$@"', "sh", *argv]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def test_a_load_leaves_its_log_and_its_final_progress(truth: Truth, tmp_path: Path) -> None:
    assert finish(start(tmp_path, truth.url, warmups=2)) == (0, "")
    assert faults(read_log(tmp_path / "events.npz")) == [Fault.OK] * 6
    progress = read_model(tmp_path / "progress.json", Progress)
    assert (progress.phase, progress.requests_done, progress.output_tokens) == ("finishing", 6, 48)
    assert {path.name for path in tmp_path.iterdir()} == {"request.json", "events.npz", "progress.json"}


def test_failed_requests_are_a_measurement_all_the_same(truth: Truth, tmp_path: Path) -> None:
    truth.configure(fail=1)
    assert finish(start(tmp_path, truth.url))[0] == 0
    assert faults(read_log(tmp_path / "events.npz")) == [Fault.HTTP_STATUS] * 6


def test_an_interrupted_load_keeps_what_it_measured(truth: Truth, tmp_path: Path) -> None:
    truth.configure(ttft_us=20_000, itl_us=20_000)
    process = start(tmp_path, truth.url, requests=200)
    deadline = time.monotonic() + 30
    while truth.stats()["completed"] < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert finish(process) == (130, "")
    found = faults(read_log(tmp_path / "events.npz"))
    assert len(found) == 200 and set(found) == {Fault.OK, Fault.CANCELLED}
    assert found.count(Fault.OK) >= 4


def test_no_server_ends_with_3_and_one_message(tmp_path: Path) -> None:
    code, said = finish(start(tmp_path, f"http://127.0.0.1:{free_port()}"))
    assert code == 3
    assert "Connection refused" in said and "what to do" in said and "Traceback" not in said
    assert not (tmp_path / "events.npz").exists()


def test_too_few_open_files_are_told_before_the_load(truth: Truth, tmp_path: Path) -> None:
    code, said = finish(start(tmp_path, truth.url, limit_files=80, concurrency=32, requests=32))
    assert code == 3 and "open files" in said and "ulimit" in said
    assert truth.stats()["requests"] == 0


def test_a_log_that_cannot_be_written_ends_with_3(truth: Truth, tmp_path: Path) -> None:
    code, said = finish(start(tmp_path, truth.url, events="/dev/full/events.npz"))
    assert code == 3 and "cannot be written" in said and "Traceback" not in said


def test_a_fault_of_our_own_is_one_message_and_its_traceback_is_in_a_file(truth: Truth, tmp_path: Path) -> None:
    code, said = finish(start(tmp_path, truth.url, events="a\0b"))
    assert code == 3 and said.startswith("prony: the load client itself failed: ValueError") and "Traceback" not in said
    log = tmp_path / "logs" / "client-fault.log"
    assert str(log) in said and "Traceback" in log.read_text()


def test_a_load_that_does_not_fit_into_memory_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Path) -> int:
        raise MemoryError

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(worker, "_run", run)
    try:
        assert worker.main(["request.json"]) == 3
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert "does not fit into this machine's memory" in capsys.readouterr().err


def test_a_progress_file_that_cannot_be_written_leaves_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "progress.json").mkdir()
    write_progress(tmp_path / "progress.json", Progress(phase="starting"))
    assert [path.name for path in tmp_path.iterdir()] == ["progress.json"]


def test_a_damaged_request_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text("{}")
    argv = [sys.executable, "-m", "prony.load.worker", str(tmp_path / "request.json")]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "LoadRequest" in done.stderr and "Traceback" not in done.stderr
