"""The sweep controller: decides what runs next and how it ended; all it knows is in its directory.

DIR/sweep.db      states          DIR/jobs/<key[:16]>/   one folder per job
DIR/sweep.lock    who controls    DIR/supervisors/       locks and output of supervisors
"""

import fcntl
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Self

from prony.base.clock import Clock
from prony.base.errors import ConfigError, LaunchError, PlanError
from prony.base.files import make_folder, write_fault
from prony.base.model import write_model
from prony.plan.job import Job, Launch
from prony.run import snapshot
from prony.run.claim import next_attempt
from prony.run.executors.base import Executor, ExecutorUnavailable, State
from prony.run.folder import ExitRecord, JobFolder, worst_exit_code
from prony.run.ledger import ACTIVE, FINISHED, UNFINISHED, JobEntry, LaunchEntry, Ledger
from prony.run.planchange import describe
from prony.run.snapshot import Snapshot

MISSES_UNTIL_LOST = 3
LOSSES_UNTIL_FAILED = 2
CANCEL_GRACE_S = 30.0
INTERRUPTED = 130
_POLL_S = 0.1


class Sweep:
    """A sweep under this process's control; only one process at a time controls a sweep. Close it, or use `with`."""

    def __init__(self, directory: Path, lock: IO[str], ledger: Ledger) -> None:
        self.directory = directory
        self._lock = lock
        self._ledger = ledger

    @classmethod
    def create(cls, directory: Path, launches: Sequence[Launch]) -> "Sweep":
        """Write a new sweep. Jobs whose folders are there with a result keep it. Raises PlanError, LaunchError."""
        sweep = cls._locked(directory)
        try:
            if not sweep._ledger.is_new:
                raise PlanError(
                    f"{directory} already holds a sweep", fix="go on with it by --resume, or choose another --out"
                )
            jobs = [job for launch in launches for job in launch.jobs]
            for job in jobs:
                job_folder(directory, job.key).check_outputs(job.key)
            _write_jobs(directory, jobs)
            sweep._ledger.create(launches)
            sweep._adopt()
        except BaseException:
            sweep.close()
            raise
        return sweep

    @classmethod
    def open(cls, directory: Path, launches: Sequence[Launch] | None = None) -> "Sweep":
        """Go on with a sweep: what is finished stays, what failed or was cancelled is planned again.

        launches: the plan as it is now; its jobs must be the same. Raises PlanError, LaunchError.
        """
        if not (directory / "sweep.db").exists():
            raise PlanError(f"{directory}: no sweep to go on with", fix="leave out --resume, or check --out")
        sweep = cls._locked(directory)
        try:
            if sweep._ledger.is_new:
                raise PlanError(
                    f"{directory}: its sweep was never written whole", fix="start it again without --resume"
                )
            sweep._check_results()
            jobs = [job for launch in launches or () for job in launch.jobs]
            if launches is not None:
                _same_plan(directory, sweep._ledger.jobs(), jobs)
            sweep._plan_again(jobs)
            sweep._adopt()
        except BaseException:
            sweep.close()
            raise
        return sweep

    @classmethod
    def _locked(cls, directory: Path) -> "Sweep":
        lock = _take_lock(directory)
        try:
            return cls(directory, lock, Ledger(directory / "sweep.db"))
        except BaseException:
            lock.close()
            raise

    def close(self) -> None:
        """Let go of the sweep; what runs goes on running."""
        self._ledger.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def step(self, executor: Executor) -> None:
        """Take one look and decide: settle what ended, then admit what fits. May be called again after any crash."""
        self._observe(executor)
        self._admit(executor)

    @property
    def done(self) -> bool:
        """Nothing is left to run and nothing is in flight."""
        in_flight = any(launch.in_flight for launch in self._ledger.launches())
        return not in_flight and all(job.state not in UNFINISHED for job in self._ledger.jobs())

    @property
    def exit_code(self) -> int:
        """0 all succeeded, 3 or 2 some failed, 4 some are not valid, 130 some were cancelled."""
        return worst_exit_code(job.exit_code for job in self._ledger.jobs())

    def folder(self, key: str) -> JobFolder:
        """Return the folder of a job."""
        return job_folder(self.directory, key)

    def finished(self) -> tuple[JobFolder, ...]:
        """Return the folders of jobs that have a result (valid or not), in the order of the plan."""
        return tuple(self.folder(job.key) for job in self._ledger.jobs() if job.state in FINISHED)

    def snapshot(self) -> Snapshot:
        """Return the sweep as it is now."""
        jobs = self._ledger.jobs()
        return snapshot.take(self.directory, jobs, [self.folder(job.key) for job in jobs])

    def interrupt(self, executor: Executor, clock: Clock, grace_s: float = CANCEL_GRACE_S) -> None:
        """Cancel what is in flight, wait until it has ended, keep what was measured."""
        deadline = clock.now_s() + grace_s
        self._cancel(executor, grace_s)
        while self._in_flight():
            if clock.now_s() > deadline:
                self._cancel(executor, 0)
            clock.sleep(_POLL_S)
            self._observe(executor)

    def _in_flight(self) -> list[LaunchEntry]:
        return [launch for launch in self._ledger.launches() if launch.in_flight]

    def _cancel(self, executor: Executor, grace_s: float) -> None:
        self._heal(executor)
        for launch in self._in_flight():
            if launch.handle is not None:
                executor.cancel(launch.handle, grace_s)

    def _plan_again(self, jobs: Sequence[Job]) -> None:
        entries = self._ledger.jobs()
        again = [entry.key for entry in entries if entry.state not in (*FINISHED, *ACTIVE)]
        _write_jobs(self.directory, [job for job in jobs if job.key in set(again)])
        with self._ledger.decision():
            self._ledger.set_state(again, "planned")
            self._ledger.forget_losses()

    def _check_results(self) -> None:
        """Raise ConfigError when what is counted as finished is not the job that it stands for."""
        for folder, key in ((self.folder(job.key), job.key) for job in self._ledger.jobs() if job.state in FINISHED):
            folder.job()
            folder.check_outputs(key)

    def _adopt(self) -> None:
        """Keep results that are there already, of an earlier sweep or of a run by hand."""
        planned = [job for job in self._ledger.jobs() if job.state == "planned"]
        records = [(job, _record(self.folder(job.key), 0)) for job in planned]
        with self._ledger.decision():
            for job, record in records:
                if record is not None and record.status in FINISHED:
                    self._ledger.finish(job.key, record)

    def _observe(self, executor: Executor) -> None:
        self._heal(executor)
        active = {launch.handle: launch for launch in self._in_flight() if launch.handle is not None}
        if not active:
            return
        try:
            states = executor.poll(list(active))
        except ExecutorUnavailable:
            return
        for handle, launch in active.items():
            self._settle(launch, states.get(handle, State(phase="absent")))

    def _heal(self, executor: Executor) -> None:
        """Bind what a crash left between the intention and the handle: `submit` finds it, or starts it."""
        for launch in self._in_flight():
            if launch.handle is None:
                keys = [job.key for job in self._ledger.jobs(launch.key) if job.state in ACTIVE]
                self._submit(executor, launch, launch.attempt, keys)

    def _settle(self, launch: LaunchEntry, state: State) -> None:
        """Bring the ledger up to date with one launch; the exit records outrank what the executor says."""
        misses = launch.misses + 1 if state.phase == "absent" else 0
        over = state.phase in ("exited", "cancelled", "preempted") or misses >= MISSES_UNTIL_LOST
        jobs = [job for job in self._ledger.jobs(launch.key) if job.state in ACTIVE]
        records = {job.key: _record(self.folder(job.key), launch.attempt) for job in jobs}
        lost = [job for job in jobs if records[job.key] is None]
        begun = [job for job in lost if job.state == "queued" and self.folder(job.key).progress() is not None]
        if not (over or begun or misses != launch.misses or len(lost) < len(jobs)):
            return
        with self._ledger.decision():
            for key, record in records.items():
                if record is not None:
                    self._ledger.finish(key, record)
            self._ledger.set_state([job.key for job in begun], "running")
            self._ledger.missed(launch.key, misses)
            if over:
                self._lose(lost, state)
                self._ledger.land(launch.key)

    def _lose(self, jobs: Sequence[JobEntry], state: State) -> None:
        """Retry once what had begun and left no record; when nothing had begun, all are counted."""
        begun = [job for job in jobs if self.folder(job.key).progress() is not None]
        counted = [] if state.phase == "preempted" else begun or list(jobs)
        for job in counted:
            self._ledger.count_loss(job.key)
        failed = [job.key for job in counted if job.losses + 1 >= LOSSES_UNTIL_FAILED]
        self._ledger.give_up(failed, _lost(state))
        self._ledger.set_state([job.key for job in jobs if job.key not in failed], "planned")

    def _admit(self, executor: Executor) -> None:
        launches = self._ledger.launches()
        free = executor.slots - sum(launch.in_flight for launch in launches)
        for launch in launches:
            keys = [job.key for job in self._ledger.jobs(launch.key) if job.state == "planned"]
            if free > 0 and keys and not launch.in_flight:
                attempt = max(launch.attempt + 1, *(next_attempt(self.folder(key)) for key in keys))
                with self._ledger.decision():
                    self._ledger.intend(launch.key, attempt, keys)
                self._submit(executor, launch, attempt, keys)
                free -= 1

    def _submit(self, executor: Executor, launch: LaunchEntry, attempt: int, keys: Sequence[str]) -> None:
        try:
            handle = executor.submit(launch.key, [self.folder(key).path for key in keys], attempt)
        except ExecutorUnavailable:
            return
        except LaunchError as error:
            with self._ledger.decision():
                self._ledger.give_up(keys, error)
                self._ledger.land(launch.key)
            return
        with self._ledger.decision():
            self._ledger.bind(launch.key, handle)


def watch(sweep: Sweep, executor: Executor, clock: Clock, every_s: float = 0.5) -> Iterator[Snapshot]:
    """Step until the sweep is done, yielding it after each step."""
    while True:
        sweep.step(executor)
        yield sweep.snapshot()
        if sweep.done:
            return
        clock.sleep(every_s)


def drive(
    sweep: Sweep, executor: Executor, clock: Clock, show: Callable[[Snapshot], None], every_s: float = 0.5
) -> int:
    """Run a sweep to its end and return the exit code; `show` gets every snapshot.

    INT or TERM cancels what runs, waits for it, keeps what was measured and returns 130; a second one does not wait.
    """
    with _stop_requests() as stop:
        for now in watch(sweep, executor, clock, every_s):
            show(now)
            if stop:
                sweep.interrupt(executor, clock)
                show(sweep.snapshot())
                return INTERRUPTED
    return sweep.exit_code


@contextmanager
def _stop_requests() -> Iterator[list[int]]:
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _take_lock(directory: Path) -> IO[str]:
    make_folder(directory)
    try:
        lock = (directory / "sweep.lock").open("a+")
    except OSError as error:
        raise write_fault(directory, error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise LaunchError(
            f"{directory}: process {holder} controls this sweep", fix=f"wait for it, or stop it: kill -INT {holder}"
        ) from None
    except OSError as error:
        lock.close()
        raise write_fault(directory, error) from None
    return lock


def job_folder(directory: Path, key: str) -> JobFolder:
    """Return the folder of a job of a sweep."""
    return JobFolder(directory / "jobs" / key[:16])


def _write_jobs(directory: Path, jobs: Sequence[Job]) -> None:
    for job in jobs:
        folder = job_folder(directory, job.key)
        make_folder(folder.path)
        write_model(folder.job_file, job)


def _record(folder: JobFolder, attempt: int) -> ExitRecord | None:
    """Return the exit record of this attempt or a later one; a damaged one counts as none."""
    try:
        record = folder.exit_record()
    except ConfigError:
        return None
    return record if record is not None and record.attempt >= attempt else None


def _lost(state: State) -> LaunchError:
    code = "" if state.exit_code is None else f" (exit code {state.exit_code})"
    said = f": {state.reason}" if state.reason else ""
    return LaunchError(
        f"the supervisor ended twice without an exit record{code}{said}",
        fix="read DIR/supervisors/*.log and the kernel log (dmesg); then go on with --resume",
    )


def _same_plan(directory: Path, entries: Sequence[JobEntry], jobs: Sequence[Job]) -> None:
    known, asked = {entry.key for entry in entries}, {job.key for job in jobs}
    new = [job for job in jobs if job.key not in known]
    gone = [(entry, job_folder(directory, entry.key)) for entry in entries if entry.key not in asked]
    if new or gone:
        told = "\n  ".join(describe(gone, new))
        raise PlanError(
            f"{directory}: the plan has changed since this sweep was started:\n  {told}",
            fix="restore configs, recipes and load rules, or run the new plan with another --out",
        )
