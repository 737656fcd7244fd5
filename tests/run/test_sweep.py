import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

from prony.base.clock import SystemClock, iso
from prony.base.errors import LaunchError, PlanError
from prony.base.model import write_model
from prony.cli.run import choose_out
from prony.load.progress import Progress
from prony.run.executors.base import ExecutorUnavailable, Phase, State
from prony.run.executors.local import LocalExecutor
from prony.run.folder import ExitRecord, JobFolder, Status
from prony.run.ledger import JobState, Ledger
from prony.run.sweep import Sweep, drive, watch
from tests.conftest import REPOSITORY
from tests.run.conftest import Bench
from tests.run.kit import eventually, make_deployment, make_launches

CLOCK = SystemClock()


class PaperExecutor:
    """An executor whose supervisors are what the test says; it notes what was submitted."""

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self.submitted: list[tuple[list[Path], int]] = []
        self.phase: Phase = "running"
        self.known = True
        self.reachable = True

    def submit(self, launch: str, folders: Sequence[Path], attempt: int) -> str:
        self.submitted.append((list(folders), attempt))
        return f"paper:{launch[:8]}-{attempt}"

    def poll(self, handles: Collection[str]) -> Mapping[str, State]:
        if not self.reachable:
            raise ExecutorUnavailable("the scheduler does not answer")
        return {handle: State(phase=self.phase) for handle in handles} if self.known else {}

    def cancel(self, handle: str, grace_s: float = 30.0) -> None:
        self.phase = "cancelled"

    def end(self, path: Path, status: Status = "succeeded", code: int = 0) -> None:
        """Do as a supervisor that ends a job."""
        now = iso(CLOCK.wall())
        record = ExitRecord(
            status=status, exit_code=code, attempt=self.submitted[-1][1], started_at=now, ended_at=now, message=status
        )
        write_model(JobFolder(path).exit_file, record)

    def begin(self, path: Path) -> None:
        """Do as a supervisor that begins a job."""
        write_model(JobFolder(path).progress_file, Progress(phase="starting"))


def states(sweep: Sweep) -> list[JobState]:
    """Return the states of all jobs."""
    return [job.state for job in sweep.snapshot().jobs]


def controller(directory: Path, how: str, *options: str) -> "subprocess.Popen[str]":
    """Start a controller as a process of its own."""
    command = [sys.executable, "-m", "tests.run.controller", str(directory), how, *options]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: "subprocess.Popen[str]", code: int) -> str:
    """Wait for a controller and return what it said on stderr."""
    _, said = process.communicate(timeout=40)
    assert process.returncode == code, said
    assert "Traceback" not in said
    return said


def records(directory: Path) -> dict[str, ExitRecord]:
    """Return the exit records of a sweep."""
    folders = [JobFolder(path) for path in (directory / "jobs").iterdir()]
    return {folder.path.name: record for folder in folders if (record := folder.exit_record())}


def test_sweep_runs_to_its_end_and_leaves_nothing(bench: Bench) -> None:
    launches = make_launches(make_deployment(), 1, 2)
    with Sweep.create(bench.directory, launches) as sweep:
        assert states(sweep) == ["planned", "planned"]
        code = drive(sweep, LocalExecutor(), CLOCK, lambda _: None, every_s=0.05)
        assert code == 0
        assert states(sweep) == ["succeeded", "succeeded"]
        assert [folder.job().load.concurrency for folder in sweep.finished()] == [1, 2]
    assert bench.survivors() == ()


def test_failed_launch_does_not_stop_the_others(bench: Bench) -> None:
    launches = make_launches(make_deployment("--die-at-start"), 1, 2) + make_launches(make_deployment(), 4)
    with Sweep.create(bench.directory, launches) as sweep:
        assert drive(sweep, LocalExecutor(), CLOCK, lambda _: None, every_s=0.05) == 3
        assert states(sweep) == ["failed", "failed", "succeeded"]
        assert "no such device" in sweep.snapshot().jobs[0].message


def test_killed_controller_is_resumed_without_running_anything_twice(bench: Bench) -> None:
    options = ("--delay", "0.15", "--starts", str(bench.directory / "starts"))
    first = controller(bench.directory, "new", *options)
    eventually(lambda: (bench.directory / "jobs").exists() and len(records(bench.directory)) == 1)
    first.kill()
    first.communicate()
    before = records(bench.directory)
    assert len(before) < 3
    finish(controller(bench.directory, "resume", *options), 0)
    after = records(bench.directory)
    assert len(after) == 3
    assert all(record.status == "succeeded" and record.attempt == 1 for record in after.values())
    assert before.items() <= after.items()
    assert len((bench.directory / "starts").read_text().split()) == 1
    assert bench.survivors() == ()


def test_killed_controller_and_supervisor_lose_only_the_job_that_ran(bench: Bench) -> None:
    options = ("--delay", "0.15", "--starts", str(bench.directory / "starts"))
    first = controller(bench.directory, "new", *options)
    eventually(lambda: (bench.directory / "jobs").exists() and len(records(bench.directory)) == 1)
    first.kill()
    first.communicate()
    os.kill(supervisor_of(bench.directory), signal.SIGKILL)
    before = records(bench.directory)
    finish(controller(bench.directory, "resume", *options), 0)
    after = records(bench.directory)
    assert before.items() <= after.items()
    assert sorted(record.attempt for record in after.values()) == [1, 2, 2]
    assert all(record.status == "succeeded" for record in after.values())
    assert bench.survivors() == ()


def supervisor_of(directory: Path) -> int:
    """Return the pid of the supervisor that claimed a job of the sweep."""
    text = next((directory / "jobs").glob("*/claim-*.json")).read_text()
    return int(text.partition('"supervisor":"')[2].partition("@")[0])


def test_interrupt_keeps_what_was_measured_and_resume_runs_the_rest(bench: Bench) -> None:
    options = (
        "--delay",
        "0.15",
    )
    first = controller(bench.directory, "new", *options)
    eventually(lambda: (bench.directory / "jobs").exists() and len(records(bench.directory)) == 1)
    first.send_signal(signal.SIGINT)
    finish(first, 130)
    assert bench.survivors() == ()
    stopped = sorted(record.status for record in records(bench.directory).values())
    assert stopped[0] == "cancelled"
    assert stopped[-1] == "succeeded"
    kept = {name: record for name, record in records(bench.directory).items() if record.status == "succeeded"}
    finish(controller(bench.directory, "resume", *options), 0)
    assert kept.items() <= records(bench.directory).items()
    assert {record.status for record in records(bench.directory).values()} == {"succeeded"}


def test_second_controller_is_told_who_holds_the_sweep(bench: Bench) -> None:
    launches = make_launches(make_deployment(), 1)
    with Sweep.create(bench.directory, launches), pytest.raises(LaunchError, match=f"process {os.getpid()} controls"):
        Sweep.open(bench.directory, launches)


def test_existing_sweep_is_not_started_over(bench: Bench) -> None:
    launches = make_launches(make_deployment(), 1)
    Sweep.create(bench.directory, launches).close()
    with pytest.raises(PlanError, match="already holds a sweep"):
        Sweep.create(bench.directory, launches)


def test_resume_without_a_sweep_is_refused(bench: Bench) -> None:
    with pytest.raises(PlanError, match="no sweep to go on with"):
        Sweep.open(bench.directory)


def test_sweep_that_was_killed_before_it_was_written_is_started_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = make_launches(make_deployment(), 1)
    monkeypatch.chdir(bench.directory)
    out = choose_out(None, Path("sim.yaml"), resume=False)
    for left in ("nothing", "lock", "database"):
        out.mkdir(parents=True, exist_ok=True)
        if left == "lock":
            (out / "sweep.lock").write_text("99999\n")
        if left == "database":
            Ledger(out / "sweep.db").close()
            with pytest.raises(PlanError, match="never written whole"):
                Sweep.open(out, launches)
        assert choose_out(None, Path("sim.yaml"), resume=False) == out
        assert choose_out(None, Path("sim.yaml"), resume=True) == out
    with Sweep.create(out, launches) as sweep:
        assert states(sweep) == ["planned"]
        assert choose_out(None, Path("sim.yaml"), resume=False) != out
        assert choose_out(None, Path("sim.yaml"), resume=True) == out


def test_resume_with_a_changed_plan_names_what_is_new_and_gone(bench: Bench) -> None:
    deployment = make_deployment()
    Sweep.create(bench.directory, make_launches(deployment, 1, 2)).close()
    with pytest.raises(PlanError, match=r"new: tiny-key conc=4\n  gone: tiny-key conc=2") as caught:
        Sweep.open(bench.directory, make_launches(deployment, 1, 4))
    assert "another --out" in caught.value.fix


def test_resume_plans_again_what_failed_and_keeps_what_succeeded(bench: Bench) -> None:
    launches = make_launches(make_deployment(), 1, 2)
    executor = PaperExecutor()
    with Sweep.create(bench.directory, launches) as sweep:
        sweep.step(executor)
        folders = executor.submitted[0][0]
        executor.end(folders[0])
        executor.end(folders[1], "failed", 3)
        executor.phase = "exited"
        sweep.step(executor)
        assert states(sweep) == ["succeeded", "failed"]
        assert sweep.done
        assert sweep.exit_code == 3
    executor.phase = "running"
    with Sweep.open(bench.directory, launches) as sweep:
        assert states(sweep) == ["succeeded", "planned"]
        sweep.step(executor)
        assert executor.submitted[-1] == ([folders[1]], 2)
        sweep.step(executor)
        assert states(sweep) == ["succeeded", "queued"]


def test_exit_record_outranks_the_executor(bench: Bench) -> None:
    executor = PaperExecutor()
    with Sweep.create(bench.directory, make_launches(make_deployment(), 1)) as sweep:
        sweep.step(executor)
        executor.end(executor.submitted[0][0][0], "invalid", 4)
        executor.phase = "cancelled"
        sweep.step(executor)
        assert states(sweep) == ["invalid"]
        assert sweep.exit_code == 4


def test_job_without_an_exit_record_is_retried_once_and_what_had_not_begun_is_not_blamed(bench: Bench) -> None:
    executor = PaperExecutor()
    with Sweep.create(bench.directory, make_launches(make_deployment(), 1, 2)) as sweep:
        sweep.step(executor)
        first, second = executor.submitted[0][0]
        executor.begin(first)
        sweep.step(executor)
        assert states(sweep) == ["running", "queued"]
        executor.phase = "exited"
        sweep.step(executor)
        assert executor.submitted[-1] == ([first, second], 2)
        sweep.step(executor)
        assert states(sweep) == ["failed", "queued"]
        assert "ended twice without an exit record" in sweep.snapshot().jobs[0].message
        assert executor.submitted[-1] == ([second], 3)


def test_absent_is_not_failure_before_three_polls(bench: Bench) -> None:
    executor = PaperExecutor()
    with Sweep.create(bench.directory, make_launches(make_deployment(), 1)) as sweep:
        sweep.step(executor)
        executor.known = False
        sweep.step(executor)
        sweep.step(executor)
        assert states(sweep) == ["queued"]
        executor.known = True
        sweep.step(executor)
        executor.known = False
        sweep.step(executor)
        sweep.step(executor)
        assert len(executor.submitted) == 1
        sweep.step(executor)
        assert executor.submitted[-1][1] == 2


def test_executor_that_does_not_answer_changes_nothing(bench: Bench) -> None:
    executor = PaperExecutor()
    with Sweep.create(bench.directory, make_launches(make_deployment(), 1)) as sweep:
        sweep.step(executor)
        executor.reachable = False
        for _ in range(5):
            sweep.step(executor)
        assert states(sweep) == ["queued"]
        assert len(executor.submitted) == 1


def test_only_as_many_launches_as_slots_are_in_flight(bench: Bench) -> None:
    launches = sum((make_launches(make_deployment("--delay", str(n)), 1) for n in range(4)), ())
    executor = PaperExecutor(slots=2)
    with Sweep.create(bench.directory, launches) as sweep:
        sweep.step(executor)
        sweep.step(executor)
        assert len(executor.submitted) == 2
        assert states(sweep) == ["queued", "queued", "planned", "planned"]


def test_crash_between_intention_and_handle_submits_the_same_attempt_again(bench: Bench) -> None:
    class Crash(PaperExecutor):
        def submit(self, launch: str, folders: Sequence[Path], attempt: int) -> str:
            super().submit(launch, folders, attempt)
            raise KeyboardInterrupt

    launches = make_launches(make_deployment(), 1)
    crashing, executor = Crash(), PaperExecutor()
    with Sweep.create(bench.directory, launches) as sweep, pytest.raises(KeyboardInterrupt):
        sweep.step(crashing)
    with Sweep.open(bench.directory, launches) as sweep:
        sweep.step(executor)
    assert executor.submitted == crashing.submitted


def test_results_that_are_there_already_are_kept_by_a_new_sweep(bench: Bench) -> None:
    launches = make_launches(make_deployment(), 1, 2)
    folder = bench.folder(launches[0].jobs[0])
    assert bench.run(folder).returncode == 0
    with Sweep.create(bench.directory, launches) as sweep:
        assert states(sweep) == ["succeeded", "planned"]


def test_snapshot_tells_progress_and_time_left(bench: Bench) -> None:
    executor = PaperExecutor()
    with Sweep.create(bench.directory, make_launches(make_deployment(), 1, 2)) as sweep:
        seen = next(watch(sweep, executor, CLOCK))
        assert seen.eta_s is None
        running = Progress(phase="measuring", requests_total=4, requests_done=1, elapsed_s=2.0)
        write_model(JobFolder(executor.submitted[0][0][0]).progress_file, running)
        seen = next(watch(sweep, executor, CLOCK))
        assert seen.jobs[0].progress == running
        assert seen.jobs[0].eta_s == pytest.approx(6.0)
        assert seen.jobs[1].eta_s == pytest.approx(4.0)
        assert seen.eta_s == pytest.approx(10.0)
        assert seen.left == 2


def test_damaged_database_is_named(bench: Bench) -> None:
    (bench.directory / "sweep.db").write_bytes(b"this is not a database, and it is long enough to be read as one" * 20)
    with pytest.raises(PlanError, match=r"sweep\.db: file is not a database"):
        Sweep.open(bench.directory)
