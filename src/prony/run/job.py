"""The supervisor: job folders of one launch in, one server start, a result and an exit record out of each."""

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.base.clock import Clock, iso
from prony.base.errors import ConfigError, LaunchError, MeasurementError, PlanError, PronyError
from prony.base.model import write_model
from prony.load.progress import Progress, write_progress
from prony.plan.job import Job
from prony.plan.planner import SECRET_ENDINGS, check
from prony.run import bindings, claim, launch
from prony.run.client import Outcome, run_load
from prony.run.folder import ExitRecord, FaultClass, JobFolder, Status, worst_exit_code
from prony.run.process import Cancelled, Supervisor

_SECRET_MIN_LENGTH = 6
_STOP_GRACE_S = 5.0
_INTERRUPTED = 130


@dataclass(frozen=True)
class _Task:
    """One job, its folder and which attempt at it this is."""

    folder: JobFolder
    job: Job
    attempt: int

    @property
    def mark(self) -> str:
        return f"{self.job.key}/{self.attempt}"


@dataclass(frozen=True)
class _End:
    """What exit.json says, before it is dated."""

    status: Status
    fault: FaultClass = "none"
    exit_code: int = 0
    message: str = ""
    fix: str = ""


_CANCELLED = _End("cancelled", exit_code=_INTERRUPTED, message="cancelled", fix="run it again, or go on with --resume")


def run_jobs(folders: Sequence[Path], attempt: int | None, clock: Clock) -> int:
    """Run the jobs of one launch in this process, which must have no other children; return the exit code.

    attempt: None takes the next free number in each folder. Every folder ends with its own exit.json, whatever happens.
    Exit codes: 0 all succeeded, 3 some failed or timed out, 4 some are not valid, 130 cancelled. Raises ConfigError,
    PlanError or LaunchError, before anything is started, when the folders cannot be run.
    """
    tasks = _tasks(folders, attempt)
    sweep = str(tasks[0].folder.path.parent)
    with Supervisor(sweep, _secrets(tasks[0].job)) as owner:
        _claim_all(tasks, clock)
        run = _Run(owner, clock)
        run.all(tasks)
    for task in tasks:
        bindings.drop_shared(task.folder.scratch)
    return worst_exit_code(end.exit_code for end in run.ends)


def _tasks(folders: Sequence[Path], attempt: int | None) -> tuple[_Task, ...]:
    named = [JobFolder(path.resolve()) for path in dict.fromkeys(folders)]
    tasks = tuple(_task(folder, attempt) for folder in named)
    if not tasks:
        raise PlanError("no job folder was named", fix="prony job run DIR [DIR...]")
    first = tasks[0]
    for task in tasks:
        if task.job.launch_key != first.job.launch_key:
            raise PlanError(
                f"{task.folder.path} needs another server than {first.folder.path}",
                allowed="folders of equal launch key",
                fix="run it with a command of its own",
            )
    return tasks


def _task(folder: JobFolder, attempt: int | None) -> _Task:
    job = folder.job()
    folder.check_outputs(job.key)
    check(job.point, job.deployment)
    return _Task(folder, job, attempt or claim.next_attempt(folder))


def _secrets(job: Job) -> list[str]:
    names = {*bindings.secret_names(job.deployment), *(name for name in os.environ if name.endswith(SECRET_ENDINGS))}
    return [value for name in names if len(value := os.environ.get(name, "")) >= _SECRET_MIN_LENGTH]


def _claim_all(tasks: Sequence[_Task], clock: Clock) -> None:
    for done, task in enumerate(tasks):
        try:
            claim.claim(task.folder, task.attempt, clock)
        except PronyError:
            for earlier in tasks[:done]:
                claim.release_reserve(earlier.folder)
                claim.claim_file(earlier.folder, earlier.attempt).unlink(missing_ok=True)
            raise


class _Run:
    """Runs tasks one after another; the server stays up between them while it can be trusted."""

    def __init__(self, owner: Supervisor, clock: Clock) -> None:
        self.owner = owner
        self.clock = clock
        self.server: launch.Server | None = None
        self.ends: list[_End] = []

    def all(self, tasks: Sequence[_Task]) -> None:
        """Run every task; what stops one of them for all (no server, a cancel) ends the rest alike."""
        for_all: _End | None = None
        for task in tasks:
            began = iso(self.clock.wall())
            for_all = for_all or self._begin(task)
            end = for_all or self._attempt(task, began)
            if end is _CANCELLED:
                for_all = end
            self._finish(task, end, began)

    def _begin(self, task: _Task) -> _End | None:
        """Have a server up; return the end of all remaining tasks when that is impossible."""
        self.owner.pump.direct(task.folder.logs)
        write_progress(task.folder.progress_file, Progress(phase="starting", requests_total=task.job.load.requests))
        if self.server is not None:
            return None
        try:
            self.server = launch.start(task.job.deployment, self.owner, task.mark, self.clock, task.folder.scratch)
        except Exception as error:
            self._drop_server()
            return self._end_of(error, task)
        return None

    def _attempt(self, task: _Task, began: str) -> _End:
        try:
            return self._load_and_measure(task, began)
        except Exception as error:
            self._drop_server()
            return self._end_of(error, task)

    def _load_and_measure(self, task: _Task, began: str) -> _End:
        server = self.server
        if server is None:
            raise RuntimeError("a server was started")
        outcome = run_load(task.job, task.folder, server, self.owner, task.mark, self.clock)
        ended = iso(self.clock.wall())
        if outcome.status != "loaded":
            self._drop_server()
            return _not_loaded(outcome)
        self.owner.pump.drain()
        if self.owner.pump.fault is not None:
            raise _disk_refused(task.folder.logs, self.owner.pump.fault)
        # The logs become artefacts by content now: what the server says later goes beside them.
        self.owner.pump.direct(task.folder.logs / "after")
        return _measure(task, server, began, ended)

    def _drop_server(self) -> None:
        """After anything but a clean load the next task gets a fresh server."""
        self.server = None
        with contextlib.suppress(LaunchError):
            self.owner.stop_all(_STOP_GRACE_S)

    def _end_of(self, error: Exception, task: _Task) -> _End:
        if isinstance(error, Cancelled):
            return _CANCELLED
        if isinstance(error, OSError):
            error = _disk_refused(task.folder.path, error)
        if isinstance(error, PronyError):
            return _End("failed", _fault_class(error), error.exit_code, error.message, error.fix)
        log = task.folder.logs / "supervisor.log"
        with contextlib.suppress(OSError), log.open("a") as file:
            traceback.print_exception(error, file=file)
        kind = type(error).__name__
        return _End(
            "failed",
            "infrastructure",
            3,
            f"prony itself failed: {kind}: {error}",
            f"report it with {log}",
        )

    def _finish(self, task: _Task, end: _End, began: str) -> None:
        record = ExitRecord(
            status=end.status,
            fault=end.fault,
            exit_code=end.exit_code,
            attempt=task.attempt,
            job_key=task.job.key,
            message=self._redact(end.message),
            fix=self._redact(end.fix),
            started_at=began,
            ended_at=iso(self.clock.wall()),
        )
        claim.release_reserve(task.folder)
        try:
            write_model(task.folder.exit_file, record)
        except LaunchError as error:
            end = _End("failed", "launch", 3, error.message, error.fix)
            print(f"prony: {error}", file=sys.stderr)  # noqa: T201 - the disk refuses the record; stderr is what is left
        claim.drop_partials(task.folder)
        self.ends.append(end)

    def _redact(self, text: str) -> str:
        return self.owner.pump.redact(text.encode()).decode(errors="replace")


def _measure(task: _Task, server: launch.Server, began: str, ended: str) -> _End:
    from prony.run.record import Served, build_result  # NumPy loads slowly: the server starts first

    version = server.version or task.job.deployment.engine_version
    result = build_result(task.job, task.folder, Served(version, began, ended, server.kv_pool_tokens))
    write_model(task.folder.result_file, result)
    bad = [verdict for verdict in result.row.verdicts if verdict.severity == "invalid"]
    if bad:
        return _End("invalid", "measurement", MeasurementError.exit_code, bad[0].message, bad[0].fix)
    return _End("succeeded")


def _not_loaded(outcome: Outcome) -> _End:
    status: Status = "timeout" if outcome.status == "timeout" else "failed"
    return _End(status, outcome.fault, outcome.exit_code, outcome.message, outcome.fix)


def _disk_refused(path: Path, error: OSError) -> LaunchError:
    return LaunchError(
        f"{error.filename or path}: {error.strerror or error}",
        fix="free space on that file system or choose another place with --out; then go on with --resume",
    )


def _fault_class(error: PronyError) -> FaultClass:
    if isinstance(error, ConfigError | PlanError):
        return "config"
    return "measurement" if isinstance(error, MeasurementError) else "launch"
