"""What the new entries of the change log make run: rows as CI gets them, evals included, and their GPU-hours."""

from collections.abc import Iterable, Sequence

from prony.base.model import Frozen
from prony.gate.cost import MULTI_AGENTIC_MIN, MULTI_MIN, SINGLE_MIN, Booking, booked_pool
from prony.gate.document import Config
from prony.gate.hardware import likely_gpus_per_node
from prony.spec.changelog.batch import Modifiers
from prony.spec.changelog.buckets import is_agentic, is_multi
from prony.spec.changelog.entry import ChangelogEntry
from prony.spec.changelog.select import Masters, select
from prony.spec.compat.expand import JsonRow
from prony.spec.point import RoleName, RolePool, Setting


class Sweep(Frozen):
    """Rows that new entries select, and what they book; each row is one job, whatever its concurrencies."""

    benchmarks: int
    evals: int
    booking: Booking


def sweep(entries: Sequence[ChangelogEntry], masters: Masters, config: Config) -> Sweep:
    """Return what entries make run without labels that trim a sweep. Raises ConfigError where selection would."""
    chosen = select(entries, masters, Modifiers())
    return Sweep(
        benchmarks=len(chosen.throughput), evals=len(chosen.evals),
        booking=_book((*chosen.throughput, *chosen.evals), config),
    )  # fmt: skip


def _book(rows: Sequence[JsonRow], config: Config) -> Booking:
    sizes = {str(row["runner"]): likely_gpus_per_node(config.runners, str(row["runner"])) for row in rows}
    hours = sum(_gpus(row, sizes[str(row["runner"])]) * _limit_min(row) / 60 for row in rows)
    unknown = tuple(sorted(name for name, size in sizes.items() if size is None))
    return Booking(jobs=len(rows), gpu_hours=hours, unknown_nodes=unknown)


def _limit_min(row: JsonRow) -> int:
    if not is_multi(row):
        return SINGLE_MIN
    return MULTI_AGENTIC_MIN if is_agentic(row) else MULTI_MIN


def _gpus(row: JsonRow, per_node: int | None) -> int:
    return sum(booked_pool(pool, per_node) for pool in _pools(row))


def _pools(row: JsonRow) -> Iterable[RolePool]:
    if not is_multi(row):
        return (_pool("agg", row),)
    return (_pool("prefill", row["prefill"]), _pool("decode", row["decode"]))


def _pool(role: RoleName, spread: JsonRow) -> RolePool:
    pairs = (str(text).partition("=") for text in spread.get("additional-settings") or ())
    return RolePool(
        role=role, replicas=int(spread.get("num-worker", 1)), tp=int(spread["tp"]), pp=int(spread.get("pp", 1)),
        pcp=int(spread.get("pcp-size", 1)), settings=tuple(Setting(name=name, value=value) for name, _, value in pairs),
    )  # fmt: skip
