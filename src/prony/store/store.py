"""The result store: rows in, rows out, nothing lost and nothing overwritten."""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import orjson
import sqlalchemy as sa
from pydantic import ValidationError

from prony.base.clock import Clock, SystemClock, iso
from prony.base.errors import ConfigError, LaunchError
from prony.base.finding import Finding
from prony.base.model import Frozen, digest, first_fault
from prony.measure.result import Row
from prony.store.database import StoreFile, file_of, make_engine, make_parent, name_of, reading, writing
from prony.store.schema import MIGRATIONS, current_version, findings, migrate, receipts, results
from prony.store.versions import Ingest, Version

_CHUNK = 500


class Receipt(Frozen):
    """What one ingest did: how many rows were new, got a new version, were known; how many findings were new."""

    source: str
    at: str
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    findings: int = 0


class RowFilter(Frozen):
    """Which rows; an empty tuple means any. model: id or prefix; key: a start of the key."""

    key: str = ""
    model: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    framework: tuple[str, ...] = ()
    precision: tuple[str, ...] = ()
    spec_decoding: tuple[str, ...] = ()
    isl: tuple[int, ...] = ()
    osl: tuple[int, ...] = ()
    concurrency: tuple[int, ...] = ()
    origin: Literal["", "measured", "imported"] = ""
    valid_only: bool = False


@dataclass(frozen=True)
class Selection:
    """Rows of a store, and what of it cannot be read."""

    rows: tuple[Row, ...]
    unreadable: tuple[Finding, ...]


@dataclass(frozen=True)
class StoredVersion:
    """One version of a row as the store keeps it. row: None when it cannot be read; stored_at: ISO 8601 UTC."""

    key: str
    version: int
    shown: bool
    stored_at: str
    row: Row | None


EVERYTHING = RowFilter()


def open_store(place: str | Path, *, create: bool = True, clock: Clock | None = None, wait_s: float = 10.0) -> "Store":
    """Open a store by SQLite path or database URL, bringing its schema up to date.

    Raises ConfigError when it is not there and not to be created, LaunchError when it cannot be used.
    """
    path = file_of(str(place))
    if path is not None:
        if not create and not path.exists():
            raise ConfigError(
                f"{path}: no results yet",
                fix="measure with: prony run CONFIG   or import with: prony results import FILE",
            )
        make_parent(path)
    return Store(str(place), clock or SystemClock(), wait_s)


class Store:
    """An open result store; a context manager that closes it."""

    def __init__(self, name: str, clock: Clock, wait_s: float) -> None:
        self.name = name_of(name)
        self._clock = clock
        self._file = StoreFile(file_of(name))
        self._engine = make_engine(name, wait_s)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise
        self._file.remember()

    def _prepare(self) -> None:
        try:
            with reading(self._engine, self.name) as connection:
                found = current_version(connection)
            if found < len(MIGRATIONS):
                with writing(self._engine, self.name) as connection:
                    migrate(connection, iso(self._clock.wall()))
        except LaunchError as error:
            if not error.message.startswith(self.name):
                raise LaunchError(f"{self.name}: {error.message}", fix=error.fix) from None
            raise
        if found > len(MIGRATIONS):
            raise LaunchError(
                f"{self.name}: written by a newer prony (schema {found}, known here: {len(MIGRATIONS)})",
                fix="upgrade prony, or name another file with --store",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _reading(self) -> contextlib.AbstractContextManager[sa.Connection]:
        self._same_file()
        return reading(self._engine, self.name)

    def _same_file(self) -> None:
        """Open the file anew when another has its name now. Raises LaunchError when none has."""
        if self._file.replaced():
            self._engine.dispose()
            self._prepare()
            self._file.remember()

    def add(self, rows: Iterable[Row], source: str, found: Iterable[Finding] = ()) -> Receipt:
        """Ingest rows and findings in one transaction; what is known already changes nothing.

        A row whose key is known with other content becomes a new version, and a finding says so; all versions are kept.
        Content that an earlier version had is shown again when it comes last.
        Raises LaunchError; then nothing was ingested.
        """
        at = iso(self._clock.wall())
        rows = tuple(rows)
        last = {row.key: number for number, row in enumerate(rows)}
        self._same_file()
        with writing(self._engine, self.name) as connection:
            ingest = Ingest(_known_versions(connection, rows))
            for number, row in enumerate(rows):
                ingest.take(row, final=last[row.key] == number)
            news = _unknown_findings(connection, (*found, *ingest.findings))
            receipt = Receipt(
                source=source,
                at=at,
                added=ingest.added,
                changed=ingest.changed,
                unchanged=ingest.unchanged,
                findings=len(news),
            )
            if ingest.added or ingest.changed or news:
                _write(connection, receipt, ingest, news)
        return receipt

    def rows(self, where: RowFilter = EVERYTHING) -> tuple[Row, ...]:
        """Return the version shown of every readable row that matches, in order of ingest. Raises LaunchError."""
        return self.select(where).rows

    def select(self, where: RowFilter = EVERYTHING) -> Selection:
        """Return the version shown of every row that matches, and a finding for each that cannot be read.

        Raises LaunchError.
        """
        columns = results.c.key, results.c.version, results.c.row
        query = sa.select(*columns).where(results.c.latest, *_conditions(where)).order_by(results.c.id)
        with self._reading() as connection:
            return _read(connection.execute(query))

    def row(self, key_start: str) -> Row:
        """Return the one row whose key starts so. Raises ConfigError when none or several do."""
        selected = self.select(RowFilter(key=key_start))
        found = selected.rows
        if len(found) == 1:
            return found[0]
        if not found and selected.unreadable:
            raise ConfigError(selected.unreadable[0].message, fix=selected.unreadable[0].fix)
        if not found:
            raise ConfigError(f"no result has a key that starts with '{key_start}'", fix="prony results list")
        keys = ", ".join(row.key[:16] for row in found[:8])
        raise ConfigError(
            f"{len(found)} results have a key that starts with '{key_start}'", allowed=keys, fix="give more of the key"
        )

    def history(self, key: str) -> tuple[Row, ...]:
        """Return all readable versions of a row, oldest first."""
        columns = results.c.key, results.c.version, results.c.row
        query = sa.select(*columns).where(results.c.key == key).order_by(results.c.version)
        with self._reading() as connection:
            return _read(connection.execute(query)).rows

    def versions(self, key: str = "") -> tuple[StoredVersion, ...]:
        """Return all versions of one row, or of every row that has several, by key and oldest first."""
        several = sa.select(results.c.key).group_by(results.c.key).having(sa.func.count() > 1)
        wanted = results.c.key == key if key else results.c.key.in_(several)
        columns = results.c.key, results.c.version, results.c.latest, receipts.c.at, results.c.row
        query = sa.select(*columns).join(receipts, receipts.c.id == results.c.receipt_id)
        with self._reading() as connection:
            lines = connection.execute(query.where(wanted).order_by(results.c.key, results.c.version)).all()
        return tuple(
            StoredVersion(own, version, shown, at, next(iter(_read([(own, version, text)]).rows), None))
            for own, version, shown, at, text in lines
        )

    def findings(self) -> tuple[Finding, ...]:
        """Return everything that ingests found, oldest first."""
        query = sa.select(findings.c.finding).order_by(findings.c.id)
        with self._reading() as connection:
            return tuple(Finding.model_validate_json(text) for text in connection.execute(query).scalars())

    def receipts(self) -> tuple[Receipt, ...]:
        """Return what was ingested from where, oldest first; ingests that changed nothing leave none."""
        columns = [receipts.c[name] for name in Receipt.model_fields]
        query = sa.select(*columns).order_by(receipts.c.id)
        with self._reading() as connection:
            return tuple(Receipt(**line) for line in connection.execute(query).mappings())


def _read(lines: Iterable[Any]) -> Selection:
    rows: list[Row] = []
    unreadable: list[Finding] = []
    for key, version, text in lines:
        try:
            rows.append(Row.model_validate_json(text))
        except ValidationError as error:
            unreadable.append(
                Finding(
                    rule="store/unreadable",
                    severity="error",
                    message=f"result {key[:12]} version {version} cannot be read: {first_fault(error)}",
                    fix="import it again from its job folder or its file; what is stored is kept",
                )
            )
    return Selection(tuple(rows), tuple(unreadable))


def _known_versions(connection: sa.Connection, rows: Sequence[Row]) -> dict[str, list[Version]]:
    columns = [results.c[name] for name in ("key", "id", "version", "digest", "latest", "row")]
    known: dict[str, list[Version]] = {}
    keys = sorted({row.key for row in rows})
    for start in range(0, len(keys), _CHUNK):
        query = sa.select(*columns).where(results.c.key.in_(keys[start : start + _CHUNK])).order_by(results.c.version)
        for key, *rest in connection.execute(query):
            known.setdefault(key, []).append(Version(*rest))
    return known


def _unknown_findings(connection: sa.Connection, found: Iterable[Finding]) -> dict[str, Finding]:
    news = {digest(finding): finding for finding in found}
    marks = list(news)
    for start in range(0, len(marks), _CHUNK):
        query = sa.select(findings.c.digest).where(findings.c.digest.in_(marks[start : start + _CHUNK]))
        for mark in connection.execute(query).scalars():
            del news[mark]
    return news


def _write(connection: sa.Connection, receipt: Receipt, ingest: Ingest, news: dict[str, Finding]) -> None:
    made = connection.execute(sa.insert(receipts).values(**receipt.model_dump()))
    number = made.inserted_primary_key[0] if made.inserted_primary_key else None
    for start in range(0, len(ingest.superseded), _CHUNK):
        ids = ingest.superseded[start : start + _CHUNK]
        connection.execute(sa.update(results).where(results.c.id.in_(ids)).values(latest=False))
    if ingest.reinstated:
        connection.execute(sa.update(results).where(results.c.id.in_(ingest.reinstated)).values(latest=True))
    if ingest.inserts:
        connection.execute(sa.insert(results), [{**line, "receipt_id": number} for line in ingest.inserts])
    if news:
        lines = [
            {
                "digest": mark,
                "receipt_id": number,
                "rule": finding.rule,
                "severity": finding.severity,
                "finding": orjson.dumps(finding.model_dump(mode="json")).decode(),
            }
            for mark, finding in news.items()
        ]
        connection.execute(sa.insert(findings), lines)


def _conditions(where: RowFilter) -> list[sa.ColumnElement[bool]]:
    names = ("hardware", "framework", "precision", "spec_decoding", "isl", "osl", "concurrency")
    found: list[sa.ColumnElement[bool]] = [
        results.c[name].in_(wanted) for name in names if (wanted := getattr(where, name))
    ]
    if where.model:
        found.append(results.c.model.in_(where.model) | results.c.model_prefix.in_(where.model))
    if where.key:
        found.append(results.c.key.startswith(where.key, autoescape=True))
    if where.origin:
        found.append(results.c.origin == where.origin)
    if where.valid_only:
        found.append(results.c.valid)
    return found
