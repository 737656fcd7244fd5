"""Rows grouped into lines, and repeats of one point into one point."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from prony.base.model import Frozen, digest
from prony.measure.result import Row
from prony.view.words import SEPARATOR, series_label, sku_family, workload_id

BadgeKind = Literal["invalid", "warn", "simulated", "stale"]


class Badge(Frozen):
    """A mark that travels with a point: which rule gave it and why. A page writes the kind in its own language."""

    kind: BadgeKind
    rule: str = ""
    message: str = ""


class Group(Frozen):
    """Repeats of one point: the same work on the same line, apart only in the repeat index."""

    rows: tuple[Row, ...]

    @property
    def first(self) -> Row:
        """The row that speaks for the point's identity."""
        return self.rows[0]

    def mean(self, metric: str, stat: str) -> float | None:
        """Return the mean over repeats in the registry's unit, None when no repeat measured it."""
        values = self.values(metric, stat)
        return statistics.fmean(values) if values else None

    def values(self, metric: str, stat: str) -> list[float]:
        """Return what the repeats measured."""
        found = (row.value(metric, stat) for row in self.rows)
        return [value for value in found if value is not None]


class Line(Frozen):
    """What two rows of one line have in common; topology, concurrency and repeat may differ. `id` is its digest.

    measured: at least one row was measured here rather than imported or simulated.
    """

    id: str
    label: str
    model: str
    workload: str
    isl: int | None
    osl: int | None
    hardware: str
    sku_family: str
    framework: str
    precision: str
    spec_decoding: str
    disagg: bool
    simulated: bool
    client: str
    measured: bool


class Series(Frozen):
    """One line and its points."""

    line: Line
    groups: tuple[Group, ...]


def series(rows: Iterable[Row]) -> tuple[Series, ...]:
    """Group rows into lines, by label. Lines that differ in the client alone say which client they come from."""
    lines: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        lines[line_identity(row)].append(row)
    titles = Counter(_title(members[0]) for members in lines.values())
    made = [
        Series(line=_line(identity, members, titles[_title(members[0])] > 1), groups=groups(members))
        for identity, members in lines.items()
    ]
    return tuple(sorted(made, key=lambda one: (one.line.label, one.line.id)))


def measured_here(row: Row) -> bool:
    """Tell whether a row was measured by this installation, on real devices."""
    return row.origin == "measured" and not row.simulated


def line_identity(row: Row) -> tuple[object, ...]:
    """Return what two rows of one line have in common."""
    return (
        *(row.model, row.workload, row.isl, row.osl, row.hardware, row.framework),
        *(row.precision, row.spec_decoding, row.disagg, row.simulated, row.client),
    )


def groups(rows: Sequence[Row]) -> tuple[Group, ...]:
    """Group repeats of one point; a repeat index that comes twice is another run of it, and a point of its own."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.concurrency, row.measured_at, row.repeat, row.key)):
        identity = (*line_identity(row), row.topology, row.concurrency, row.image, row.config_key, row.valid)
        run = 0
        while any(other.repeat == row.repeat for other in found.get((*identity, run), ())):
            run += 1
        found.setdefault((*identity, run), []).append(row)
    return tuple(Group(rows=tuple(members)) for members in found.values())


def badges(rows: Sequence[Row], stale_before: str) -> tuple[Badge, ...]:
    """Return a point's marks: verdicts, simulated, stale when all was measured before a moment (ISO 8601)."""
    marks = [
        Badge(kind="invalid" if verdict.severity == "invalid" else "warn", rule=verdict.rule, message=verdict.message)
        for row in rows
        for verdict in row.verdicts
        if verdict.severity != "info"
    ]
    if rows[0].simulated:
        marks.append(Badge(kind="simulated"))
    if stale_before and all(row.measured_at < stale_before for row in rows):
        marks.append(Badge(kind="stale", message=max(row.measured_at for row in rows)))
    return tuple(dict.fromkeys(marks))


def _line(identity: tuple[object, ...], members: Sequence[Row], with_client: bool) -> Line:
    row = members[0]
    label = series_label(row)
    return Line(
        id=digest(list(identity))[:12],
        label=f"{label}{SEPARATOR}{row.client}" if with_client else label,
        model=row.model,
        workload=row.workload,
        isl=row.isl,
        osl=row.osl,
        hardware=row.hardware,
        sku_family=sku_family(row.hardware),
        framework=row.framework,
        precision=row.precision,
        spec_decoding=row.spec_decoding,
        disagg=row.disagg,
        simulated=row.simulated,
        client=row.client,
        measured=any(measured_here(member) for member in members),
    )


def _title(row: Row) -> tuple[str, str, str]:
    return series_label(row), row.model, workload_id(row)
