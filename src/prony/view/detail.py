"""Everything that is known of one row, with its name in words and a link where its source is one."""

from collections.abc import Sequence
from datetime import datetime

from prony.base.clock import iso
from prony.base.model import Frozen
from prony.measure.result import Row
from prony.store.store import StoredVersion
from prony.view.chart import STALE_AFTER, STANDARD, Axis, axis
from prony.view.facts import Fact, facts
from prony.view.series import Badge, badges
from prony.view.words import point_label, topology_label, workload_label


class VersionNote(Frozen):
    """One stored version of a row: its number, when it was stored, whether it is the one shown, its main value."""

    version: int
    stored_at: str
    shown: bool
    measured_at: str
    value: float | None


class Detail(Frozen):
    """One row for its card. run_url: the source when it is an http(s) address, else None.

    versions: all stored versions, oldest first, when there are several; main: the axis of their values.
    """

    label: str
    topology: str
    workload: str
    run_url: str | None
    badges: tuple[Badge, ...]
    facts: tuple[Fact, ...]
    main: Axis | None = None
    versions: tuple[VersionNote, ...] = ()
    row: Row


def detail(row: Row, now: datetime | None = None, versions: Sequence[StoredVersion] = ()) -> Detail:
    """Return the card of one row. `now` marks it as stale when it is older than 30 days."""
    several = versions if len(versions) > 1 else ()
    return Detail(
        label=point_label(row),
        topology=topology_label(row),
        workload=workload_label(row),
        run_url=row.source if row.source.startswith(("https://", "http://")) else None,
        badges=badges((row,), iso(now - STALE_AFTER) if now else ""),
        facts=facts(row),
        main=axis(STANDARD[0][1]) if several else None,
        versions=tuple(_note(one) for one in several),
        row=row,
    )


def _note(stored: StoredVersion) -> VersionNote:
    return VersionNote(
        version=stored.version,
        stored_at=stored.stored_at,
        shown=stored.shown,
        measured_at=stored.row.measured_at if stored.row else "",
        value=stored.row.value(STANDARD[0][1]) if stored.row else None,
    )
