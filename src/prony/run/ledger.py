"""The sweep's memory: launches, jobs and their states in SQLite, one transaction per decision."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from prony.base.errors import LaunchError, PlanError
from prony.plan.job import Job, Launch
from prony.run.folder import ExitRecord

JobState = Literal["planned", "queued", "running", "succeeded", "invalid", "failed", "timeout", "cancelled"]
FINISHED: tuple[JobState, ...] = ("succeeded", "invalid")
ACTIVE: tuple[JobState, ...] = ("queued", "running")
UNFINISHED: tuple[JobState, ...] = ("planned", *ACTIVE)

_SCHEMA = (
    """CREATE TABLE launches (
        position INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, attempt INTEGER NOT NULL DEFAULT 0,
        in_flight INTEGER NOT NULL DEFAULT 0, handle TEXT, misses INTEGER NOT NULL DEFAULT 0)""",
    """CREATE TABLE jobs (
        position INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, launch TEXT NOT NULL REFERENCES launches (key),
        label TEXT NOT NULL, work REAL NOT NULL, state TEXT NOT NULL DEFAULT 'planned',
        attempt INTEGER NOT NULL DEFAULT 0, losses INTEGER NOT NULL DEFAULT 0, exit_code INTEGER NOT NULL DEFAULT 0,
        message TEXT NOT NULL DEFAULT '', fix TEXT NOT NULL DEFAULT '', started_at TEXT, ended_at TEXT)""",
    "PRAGMA user_version = 1",
)


@dataclass(frozen=True)
class JobEntry:
    """A job as the controller knows it. work: its size in decode steps; losses: attempts that left no exit record."""

    position: int
    key: str
    launch: str
    label: str
    work: float
    state: JobState
    attempt: int
    losses: int
    exit_code: int
    message: str
    fix: str
    started_at: str | None
    ended_at: str | None


@dataclass(frozen=True)
class LaunchEntry:
    """A launch as the controller knows it. misses: how often in a row the executor did not know its handle."""

    position: int
    key: str
    attempt: int
    in_flight: int
    handle: str | None
    misses: int


class Ledger:
    """The database of one sweep; its directory must be on a local disk (WAL does not work over NFS)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._db = sqlite3.connect(path, isolation_level=None, timeout=10.0)
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "busy_timeout = 10000"):
                self._db.execute(f"PRAGMA {pragma}").fetchall()
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    @property
    def is_new(self) -> bool:
        """No sweep has been written to it."""
        try:
            return int(self._db.execute("PRAGMA user_version").fetchone()[0]) == 0
        except sqlite3.Error as error:
            raise self._fault(error) from None

    @contextmanager
    def decision(self) -> Iterator[None]:
        """Write all that happens inside, or nothing. Raises LaunchError when the disk refuses."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def _fault(self, error: sqlite3.Error) -> Exception:
        if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
            return PlanError(f"{self._path}: {error}", fix="choose another place with --out; nothing was changed")
        fix = "free space on that file system or check its permissions; then go on with --resume"
        return LaunchError(f"{self._path}: {error}", fix=fix)

    def create(self, launches: Sequence[Launch]) -> None:
        """Write a new sweep, all jobs planned."""
        with self.decision():
            for statement in _SCHEMA:
                self._db.execute(statement)
            self._db.executemany("INSERT INTO launches (key) VALUES (?)", [(launch.key,) for launch in launches])
            self._db.executemany(
                "INSERT INTO jobs (key, launch, label, work) VALUES (?, ?, ?, ?)",
                [(job.key, launch.key, job.point.label, work_of(job)) for launch in launches for job in launch.jobs],
            )

    def jobs(self, launch: str | None = None) -> tuple[JobEntry, ...]:
        """Return jobs in the order of the plan, of one launch or of all."""
        rows = self._select("SELECT * FROM jobs WHERE ?1 IS NULL OR launch = ?1 ORDER BY position", (launch,))
        return tuple(JobEntry(*row) for row in rows)

    def launches(self) -> tuple[LaunchEntry, ...]:
        """Return launches in the order of the plan."""
        return tuple(LaunchEntry(*row) for row in self._select("SELECT * FROM launches ORDER BY position"))

    def _select(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def set_state(self, keys: Iterable[str], state: JobState) -> None:
        """Move jobs to a state that says nothing about an end."""
        self._db.executemany(
            "UPDATE jobs SET state = ?, exit_code = 0, message = '', fix = '', ended_at = NULL WHERE key = ?",
            [(state, key) for key in keys],
        )

    def finish(self, key: str, record: ExitRecord) -> None:
        """Write down how a job ended."""
        self._db.execute(
            "UPDATE jobs SET state = ?, attempt = ?, exit_code = ?, message = ?, fix = ?, started_at = ?, ended_at = ?"
            " WHERE key = ?",
            (
                record.status,
                record.attempt,
                record.exit_code,
                record.message,
                record.fix,
                record.started_at,
                record.ended_at,
                key,
            ),
        )

    def give_up(self, keys: Iterable[str], error: LaunchError) -> None:
        """Fail jobs that left no exit record."""
        values = [(error.exit_code, error.message, error.fix, key) for key in keys]
        self._db.executemany(
            "UPDATE jobs SET state = 'failed', exit_code = ?, message = ?, fix = ? WHERE key = ?", values
        )

    def count_loss(self, key: str) -> None:
        """Note that an attempt at a job left no exit record."""
        self._db.execute("UPDATE jobs SET losses = losses + 1 WHERE key = ?", (key,))

    def forget_losses(self) -> None:
        """Give every job its retries again."""
        self._db.execute("UPDATE jobs SET losses = 0")

    def intend(self, launch: str, attempt: int, keys: Sequence[str]) -> None:
        """Write down that an attempt is about to be submitted, so that a crash cannot lose it."""
        self._db.execute(
            "UPDATE launches SET attempt = ?, in_flight = 1, handle = NULL, misses = 0 WHERE key = ?", (attempt, launch)
        )
        self._db.executemany(
            "UPDATE jobs SET state = 'queued', attempt = ? WHERE key = ?", [(attempt, key) for key in keys]
        )

    def bind(self, launch: str, handle: str) -> None:
        """Write down under which handle a launch was submitted."""
        self._db.execute("UPDATE launches SET handle = ? WHERE key = ?", (handle, launch))

    def missed(self, launch: str, times: int) -> None:
        """Write down how often in a row the executor did not know a launch."""
        self._db.execute("UPDATE launches SET misses = ? WHERE key = ?", (times, launch))

    def land(self, launch: str) -> None:
        """Write down that a launch is not in flight any more."""
        self._db.execute("UPDATE launches SET in_flight = 0, handle = NULL, misses = 0 WHERE key = ?", (launch,))


def is_written(path: Path) -> bool:
    """Tell whether a sweep's database is there and was written whole. A damaged one counts as written."""
    if not path.exists():
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as database:
            return int(database.execute("PRAGMA user_version").fetchone()[0]) != 0
    except sqlite3.Error:
        return True


def work_of(job: Job) -> float:
    """Return the size of a load in decode steps one after another: requests / concurrency * output length."""
    return job.load.requests / job.load.concurrency * (job.load.osl or 1)
