"""Everything that is known of one row, for a terminal."""

import shlex
from collections.abc import Iterator

from prony.base.units import counted, significant
from prony.cli.columns import Column, print_table
from prony.cli.console import say
from prony.measure.observed import ClientFacts, Disturbance, EngineFacts
from prony.measure.registry import metric
from prony.measure.result import Measurement, Provenance, Row
from prony.recipe.deployment import ModelRef
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
        machine = row.provenance.machine
        for name, value in _provenance(row.provenance):
            say(f"{name:<18}{value}")
        say(f"{'machine':<18}{machine.hostname}: {machine.cpu}, {counted(machine.cores, 'core')}, {machine.kernel}")


def _identity(row: Row) -> Iterator[tuple[str, object]]:
    yield "key", row.key
    if row.config_key:
        yield "config key", row.config_key
    yield "model", row.model
    yield "line", series_label(row)
    yield "topology", f"{topology_label(row)} ({counted(row.gpus_used, 'device' if row.hardware == 'cpu' else 'GPU')})"
    yield "workload", f"{row.workload} {row.isl}/{row.osl}, concurrency {row.concurrency}, repeat {row.repeat}"
    yield "measured", f"{row.measured_at or 'at an unknown time'}, {row.origin}, client {row.client}"
    yield "source", row.source
    if row.image:
        yield "image", row.image


def _provenance(known: Provenance) -> Iterator[tuple[str, object]]:
    """Give plain fields as they are and groups of facts on one line each; what is not known is left out."""
    for name in Provenance.model_fields:
        value = getattr(known, name)
        if isinstance(value, ModelRef):
            files = (f"{file.name} (sha256 {file.sha256 or 'not stated'})" for file in value.files)
            yield "model", ", ".join((f"{value.id}, revision {value.revision or 'not stated'}", *files))
        elif isinstance(value, ClientFacts | Disturbance | EngineFacts):
            facts = value.model_dump(exclude_none=True)
            yield name, ", ".join(f"{key} {_fact(one)}" for key, one in facts.items() if one not in ("", ()))
        elif name not in ("machine", "commands") and value is not None:
            yield name, value
    for role in known.commands:
        yield "command", f"{role.role} × {role.replicas}: {shlex.join(role.command)}"
        if role.env:
            yield "environment", f"{role.role}: {' '.join(f'{one.name}={one.value}' for one in role.env)}"


def _fact(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) and value < 1e6 else str(value)


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
