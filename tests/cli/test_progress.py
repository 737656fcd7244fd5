"""What an interrupted sweep says, and job folders that are run by hand."""

import json
import os
import shutil
from pathlib import Path

import pytest

from prony.cli.live import view
from prony.cli.main import main
from prony.cli.outcome import print_faults, print_interrupted
from prony.run.ledger import JobState
from prony.run.snapshot import JobView, Snapshot
from tests.conftest import REPOSITORY


def snapshot(*states: tuple[JobState, bool]) -> Snapshot:
    jobs = tuple(
        JobView(key=str(at), label=f"job{at}", folder="f", state=state, attempt=1, begun=begun, message=state)
        for at, (state, begun) in enumerate(states)
    )
    return Snapshot(directory="d", jobs=jobs, eta_s=None)


INTERRUPTED = snapshot(("succeeded", True), ("cancelled", True), ("cancelled", False), ("planned", True))


def test_a_cancelled_job_does_not_count_as_done_and_one_that_never_began_is_not_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with view(plain=True) as show:
        show(snapshot(("succeeded", True), ("running", True), ("queued", True), ("planned", True)))
        show(INTERRUPTED)
    assert capsys.readouterr().out.splitlines() == [
        "[1/4] succeeded job0: succeeded",
        "[1/4] running   job1: running",
        "[1/4] cancelled job1",
    ]


def test_the_end_of_an_interrupted_sweep_counts_what_never_started(capsys: pytest.CaptureFixture[str]) -> None:
    print_interrupted(INTERRUPTED)
    print_faults(INTERRUPTED)
    told = capsys.readouterr()
    assert told.out.strip() == "1 of 4 done, 1 interrupted, 2 not started"
    assert "job1 (cancelled)" in told.err and "job2" not in told.err
    print_interrupted(snapshot(("succeeded", True), ("failed", True)))
    assert capsys.readouterr().out == ""


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A finished sweep of two simulated points, run in its folder."""
    shutil.copytree(REPOSITORY / "examples/sim", tmp_path / "bench")
    master = tmp_path / "bench/master.yaml"
    master.write_text(master.read_text().replace("[1, 2, 4]", "[1, 2]"))
    monkeypatch.chdir(tmp_path)
    assert main(["run", "bench/master.yaml"]) == 0
    capsys.readouterr()
    return tmp_path / "prony-out/bench/jobs"


def test_a_job_folder_is_found_by_the_start_of_its_name(
    swept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[Path]] = []
    monkeypatch.setattr("prony.run.job.run_jobs", lambda folders, _attempt, _clock: ran.append(folders) or 0)
    first = sorted(swept.iterdir())[0]
    for given in (first.name[:6], f"{first.name[:6]}…", first.name):
        assert main(["job", "run", os.path.relpath(swept / given)]) == 0
        told = capsys.readouterr().out
        assert "not in the store yet; next: " in told and "results import prony-out/bench" in told
    assert {folder.resolve() for (folder,) in ran} == {first}
    (swept / "x1").mkdir()
    shutil.copy(first / "job.json", swept / "x1")
    shutil.copytree(swept / "x1", swept / "x2")
    assert main(["job", "run", str(swept / "x")]) == 2
    assert "2 job folders start so" in capsys.readouterr().err
    monkeypatch.undo()
    assert main(["job", "run", str(swept / "zz")]) == 2


def test_a_run_that_replaces_a_measurement_far_from_it_says_so(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from prony.store.store import open_store

    with open_store("prony-out/store.db") as store:
        rows = store.rows()
        doubled = [
            row.model_copy(
                update={
                    "measurements": tuple(
                        one.model_copy(update={"value": one.value * 2}) if one.metric == "tput_per_gpu" else one
                        for one in row.measurements
                    )
                }
            )
            for row in rows
        ]
        store.add(doubled, "a day with a fast machine")
    assert main(["run", "bench/master.yaml", "--resume"]) == 0
    told = capsys.readouterr().out
    assert told.count("measured again: ") == 2 and "-50%" in told
    assert main(["results", "list", "--json"]) == 0
    assert {row["version"] for row in json.loads(capsys.readouterr().out)} == {1}
