"""Opening the database: SQLite with WAL by default, faults told as what an operator can do about them."""

import contextlib
import importlib.util
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError

from prony.base.errors import ConfigError, LaunchError

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
    """Make an engine for an SQLite path or a database URL. `wait_s`: how long a writer waits for another.

    Raises ConfigError for a URL that is none of a store.
    """
    path = file_of(place)
    if path is None:
        return sa.create_engine(_server_url(place))
    if _only_readable(path):
        # Each connection sees the file as it then is: one that ignores the log must not be kept.
        engine = sa.create_engine("sqlite://", creator=lambda: _open_to_read(path, wait_s), poolclass=sa.pool.NullPool)
    else:
        engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": wait_s})

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


def file_of(place: str) -> Path | None:
    """Return the SQLite file that a place names, None for a database server. Raises ConfigError."""
    if "://" not in place:
        return Path(place)
    url = _parsed(place)
    if url.get_backend_name() == "postgresql":
        return None
    if url.get_backend_name() != "sqlite" or not url.database or url.query:
        raise _not_a_store(place)
    return Path(url.database)


def name_of(place: str) -> str:
    """Return a place for people: a password in it is not shown. Raises ConfigError."""
    return _parsed(place).render_as_string(hide_password=True) if "://" in place else place


def _parsed(place: str) -> sa.URL:
    try:
        url = sa.make_url(place)
    except (ArgumentError, ValueError):
        raise _not_a_store(place) from None
    if url.drivername not in ("sqlite", "postgresql", "postgresql+psycopg"):
        raise _not_a_store(place)
    return url


def _server_url(place: str) -> sa.URL:
    if importlib.util.find_spec("psycopg") is None:
        raise ConfigError(
            f"--store {name_of(place)}: PostgreSQL needs a driver that is not installed",
            fix="pip install 'prony[postgres]'",
        )
    return _parsed(place).set(drivername="postgresql+psycopg")


def _not_a_store(place: str) -> ConfigError:
    scheme = place.partition("://")[0]
    return ConfigError(
        f"--store {scheme}://…: not a place for results",
        allowed="a path, sqlite:///PATH, postgresql://USER@HOST/DATABASE",
        fix="write postgresql:// in full" if scheme == "postgres" else "name a file: --store prony-out/store.db",
    )


def _only_readable(path: Path) -> bool:
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _open_to_read(path: Path, wait_s: float) -> sqlite3.Connection:
    """Open a file that may not be written: with its log where one lies beside it, else as it stands."""
    log = path.with_name(f"{path.name}-wal")
    try:
        logged = log.stat().st_size > 0
    except OSError:
        logged = False
    mode = "mode=ro" if logged else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=wait_s, check_same_thread=False)


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


class StoreFile:
    """Which file a store's name stood for when it was opened; a server's database has none."""

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None or str(path) == ":memory:" else path
        self._known: tuple[int, int] | None = None

    def remember(self) -> None:
        """Take the file that has the name now for the open one."""
        self._known = self._identity()

    def replaced(self) -> bool:
        """Return whether another file has the name now. Raises LaunchError when there is none."""
        if self._path is None or self._known is None:
            return False
        now = self._identity()
        if now is None:
            raise LaunchError(
                f"{self._path}: the result store was removed or cannot be reached any more",
                fix="bring it back, or make it anew: prony results import SWEEP_DIR",
            )
        return now != self._known

    def _identity(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino
