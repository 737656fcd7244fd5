"""Everything that is known of one row, for a terminal."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table as RichTable

from prony.base.units import significant
from prony.measure.registry import metric
from prony.measure.result import Measurement, Row
from prony.view.words import series_label, topology_label

_STATS = ("mean", "std", "p50", "p90", "p95", "p99", "p999")


def print_row(row: Row) -> None:
    """Print a row's identity, verdicts, measurements and provenance."""
    console = Console()
    for name, value in _identity(row):
        print(f"{name:<14}{value}")
    for verdict in row.verdicts:
        print(f"{'verdict':<14}{verdict}")
    print()
    console.print(_distributions(row))
    print()
    console.print(_values(row))
    if any(not found.supported for found in row.measurements):
        print("\n* too few requests support this percentile (n < 10 / (1 − q))")
    if row.provenance:
        print()
        for name, value in row.provenance.model_dump(exclude={"machine"}).items():
            print(f"{name:<18}{value}")
        machine = row.provenance.machine
        print(f"{'machine':<18}{machine.hostname}: {machine.cpu}, {machine.cores} cores, {machine.kernel}")


def _identity(row: Row) -> Iterator[tuple[str, object]]:
    yield "key", row.key
    yield "model", row.model
    yield "line", series_label(row)
    yield "topology", f"{topology_label(row)} ({row.gpus_used} GPUs)"
    yield "workload", f"{row.workload} {row.isl}/{row.osl}, concurrency {row.concurrency}, repeat {row.repeat}"
    yield "measured", f"{row.measured_at or 'at an unknown time'}, {row.origin}, client {row.client}"
    yield "source", row.source
    if row.image:
        yield "image", row.image


def _distributions(row: Row) -> RichTable:
    table = RichTable(box=None, header_style="bold", pad_edge=False)
    table.add_column("per request")
    table.add_column("unit")
    for stat in (*_STATS, "n"):
        table.add_column(stat, justify="right")
    found: dict[str, dict[str, Measurement]] = {}
    for one in row.measurements:
        if one.stat != "value":
            found.setdefault(one.metric, {})[one.stat] = one
    for key, stats in found.items():
        n = next((one.n for one in stats.values() if one.n is not None), None)
        cells = [_number(stats.get(stat)) for stat in _STATS]
        table.add_row(metric(key).en, metric(key).unit, *cells, "—" if n is None else str(n))
    return table


def _values(row: Row) -> RichTable:
    table = RichTable(box=None, header_style="bold", pad_edge=False)
    table.add_column("of the whole load")
    table.add_column("value", justify="right")
    table.add_column("unit")
    for one in row.measurements:
        if one.stat == "value":
            table.add_row(metric(one.metric).en, _number(one), metric(one.metric).unit)
    return table


def _number(found: Measurement | None) -> str:
    if found is None:
        return "—"
    return significant(found.value) + ("" if found.supported else "*")
