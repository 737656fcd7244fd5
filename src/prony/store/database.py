"""Opening the database: SQLite with WAL by default, faults told as what an operator can do about them."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from prony.base.errors import LaunchError

_WRITING = "prony_writing"
# What the database says, what that means, what to do.
_FAULTS = (
    ("locked", "is locked by another process", "wait for it to end, or find it with: fuser -v FILE"),
    ("readonly", "cannot be written", "make it and its directory writable, or name another file with --store"),
    ("is full", "does not fit on its disk", "free space on that file system, then give the same command again"),
    ("disk i/o", "cannot be read or written", "look at the disk's health and free space, then give the command again"),
    ("not a database", "is not a Prony store", "name another file with --store"),
    (
        "malformed",
        "is damaged",
        "move it away and import again: every result still lies in its job folder (prony results import SWEEP_DIR)",
    ),
    ("unable to open", "cannot be opened", "check that its directory exists and that you may read and write it"),
)


def make_engine(place: str, wait_s: float) -> sa.Engine:
    """Make an engine for an SQLite path or a database URL. `wait_s`: how long a writer waits for another."""
    if "://" in place:
        return sa.create_engine(place)
    engine = sa.create_engine(sa.URL.create("sqlite", database=place), connect_args={"timeout": wait_s})

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _: Any) -> None:
        connection.isolation_level = None  # this module says BEGIN itself, so that writers take the lock at once
        # A file that cannot be written is still read.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        writing = connection.get_execution_options().get(_WRITING)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


@contextlib.contextmanager
def reading(engine: sa.Engine, name: str) -> Iterator[sa.Connection]:
    """Open a transaction that reads. Raises LaunchError."""
    with explained(name), engine.connect() as connection, connection.begin():
        yield connection


@contextlib.contextmanager
def writing(engine: sa.Engine, name: str) -> Iterator[sa.Connection]:
    """Open a transaction that is committed whole or not at all. Raises LaunchError."""
    with explained(name), engine.connect().execution_options(**{_WRITING: True}) as connection, connection.begin():
        yield connection


@contextlib.contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn the database's faults into LaunchErrors about the store of that name."""
    try:
        yield
    except DBAPIError as error:
        raise _explain(name, str(error.orig)) from None


def _explain(name: str, said: str) -> LaunchError:
    for word, meaning, fix in _FAULTS:
        if word in said.lower():
            return LaunchError(f"{name}: the result store {meaning} ({said})", fix=fix)
    return LaunchError(f"{name}: the result store cannot be used: {said}", fix="check --store")


def make_parent(path: Path) -> None:
    """Make the directory that a store file will lie in. Raises LaunchError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(
            f"{path.parent}: cannot be made: {error.strerror}", fix="name another file with --store"
        ) from None
