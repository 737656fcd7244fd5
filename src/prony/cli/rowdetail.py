"""Everything that is known of one row, for a terminal."""

from collections.abc import Iterator

from prony.base.units import counted, significant
from prony.cli.columns import Column, print_table
from prony.cli.console import say
from prony.measure.registry import metric
from prony.measure.result import Measurement, Row
from prony.view.words import series_label, topology_label

_STATS = ("mean", "std", "p50", "p90", "p95", "p99", "p999")
# Which of them go first in a narrow terminal.
_DROPS = {"p999": 4, "std": 3, "p95": 2, "n": 1}


def print_row(row: Row) -> None:
    """Print a row's identity, verdicts, measurements and provenance."""
    for name, value in _identity(row):
        say(f"{name:<14}{value}")
    for verdict in row.verdicts:
        say(f"{'verdict':<14}{verdict}")
    say()
    _print_distributions(row)
    say()
    _print_values(row)
    if any(not found.supported for found in row.measurements):
        say("\n* too few requests support this percentile (n < 10 / (1 − q))")
    if row.provenance:
        say()
        for name, value in row.provenance.model_dump(exclude={"machine"}).items():
            say(f"{name:<18}{value}")
        machine = row.provenance.machine
        say(f"{'machine':<18}{machine.hostname}: {machine.cpu}, {counted(machine.cores, 'core')}, {machine.kernel}")


def _identity(row: Row) -> Iterator[tuple[str, object]]:
    yield "key", row.key
    yield "model", row.model
    yield "line", series_label(row)
    yield "topology", f"{topology_label(row)} ({counted(row.gpus_used, 'GPU')})"
    yield "workload", f"{row.workload} {row.isl}/{row.osl}, concurrency {row.concurrency}, repeat {row.repeat}"
    yield "measured", f"{row.measured_at or 'at an unknown time'}, {row.origin}, client {row.client}"
    yield "source", row.source
    if row.image:
        yield "image", row.image


def _print_distributions(row: Row) -> None:
    found: dict[str, dict[str, Measurement]] = {}
    for one in row.measurements:
        if one.stat != "value":
            found.setdefault(one.metric, {})[one.stat] = one
    lines = []
    for key, stats in found.items():
        n = next((one.n for one in stats.values() if one.n is not None), None)
        cells = [_number(stats.get(stat)) for stat in _STATS]
        lines.append((metric(key).en, metric(key).unit, *cells, "—" if n is None else str(n)))
    numbers = [Column(stat, right=True, drop=_DROPS.get(stat, 0)) for stat in (*_STATS, "n")]
    print_table([Column("per request", least=16), Column("unit"), *numbers], lines)


def _print_values(row: Row) -> None:
    columns = (Column("of the whole load"), Column("value", right=True), Column("unit"))
    whole = [one for one in row.measurements if one.stat == "value"]
    print_table(columns, [(metric(one.metric).en, _number(one), metric(one.metric).unit) for one in whole])


def _number(found: Measurement | None) -> str:
    if found is None:
        return "—"
    return significant(found.value) + ("" if found.supported else "*")
