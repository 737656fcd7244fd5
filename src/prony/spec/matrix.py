"""The matrix: master keys expanded to points, in file order."""

import difflib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from prony.base.errors import ConfigError, PlanError
from prony.base.model import Frozen
from prony.spec.master import (
    MasterConfig,
    MasterEntry,
    MasterKey,
    MultiAgenticEntry,
    MultiFixedEntry,
    SingleAgenticEntry,
    SingleFixedEntry,
)
from prony.spec.point import FixedSeqLen, KvOffload, Point, Router, Workload
from prony.spec.runners import RunnerLabel, Runners

SearchEntry = SingleFixedEntry | MultiFixedEntry | SingleAgenticEntry | MultiAgenticEntry


class Matrix(Frozen):
    """Expanded points, and the keys whose scenarios this expansion leaves out (with the reason)."""

    points: tuple[Point, ...]
    left_out: tuple[str, ...] = ()


def select(master: MasterConfig, patterns: Sequence[str] | None) -> tuple[MasterKey, ...]:
    """Return the keys that the patterns name (`*`, `?`, `[…]` are globs), in order of first mention; None is all.

    Raises ConfigError for a pattern that names nothing.
    """
    if patterns is None:
        return master.keys
    chosen: dict[str, MasterKey] = {}
    for pattern in patterns:
        hits = [item for item in master.keys if fnmatchcase(item.key, pattern)]
        if not hits:
            raise _unknown_key(master, pattern)
        chosen.update({item.key: item for item in hits if item.key not in chosen})
    return tuple(chosen.values())


def _unknown_key(master: MasterConfig, pattern: str) -> ConfigError:
    names = [item.key for item in master.keys]
    close = difflib.get_close_matches(pattern, names, n=3)
    shown = ", ".join(close or names[:12]) + ("" if close or len(names) <= 12 else f", … ({len(names)} keys)")
    return ConfigError(f"--keys {pattern}: matches no key of the config", allowed=shown, fix="see `prony matrix list`")


def expand(keys: Sequence[MasterKey], runners: Runners) -> Matrix:
    """Expand keys to points. Raises ConfigError for an unknown runner label, PlanError when nothing is left."""
    points: list[Point] = []
    left_out: list[str] = []
    for item in keys:
        label = runners.label(item.entry.runner, f"{item.where} {item.key}")
        before = len(points)
        points.extend(_fixed_points(item.key, item.entry))
        _check_size(item, label, points[before:])
        if item.entry.scenarios.agentic_coding:
            left_out.append(f"{item.key}: agentic-coding")
        elif len(points) == before:
            left_out.append(f"{item.key}: no points")
    if not points:
        names = ", ".join(left_out) or "the selection is empty"
        raise PlanError(f"nothing to run: {names}", fix="choose keys with a fixed-seq-len scenario with --keys")
    return Matrix(points=tuple(points), left_out=tuple(left_out))


def _check_size(item: MasterKey, label: RunnerLabel, points: Sequence[Point]) -> None:
    """Refuse what cannot fit: on one node no more devices than it has."""
    if item.entry.multinode or label.hardware is None:
        return
    there = label.hardware.gpus_per_node
    for point in points:
        if point.topology.gpus > there:
            raise ConfigError(
                f"{item.where} {item.key}: {point.topology.label} needs {point.topology.gpus} devices, "
                f"a node of runner '{label.name}' has {there} ({label.where})",
                fix="lower tp, pp or pcp-size, or use another runner",
            )


def _fixed_points(key: str, entry: MasterEntry) -> Iterator[Point]:
    for item in entry.scenarios.fixed_seq_len or ():
        workload = FixedSeqLen(isl=item.isl, osl=item.osl)
        for search in item.search_space:
            yield from _points(key, entry, search, workload)


def _points(key: str, entry: MasterEntry, search: SearchEntry, workload: Workload) -> Iterator[Point]:
    router = search.router or entry.router
    transfer = getattr(search, "kv_p2p_transfer", None) or getattr(entry, "kv_p2p_transfer", None)
    offload = search.offload() if isinstance(search, SingleAgenticEntry | MultiAgenticEntry) else KvOffload()
    for concurrency in search.concurrencies():
        yield Point(
            config_key=key, image=entry.image, model=entry.model, model_prefix=entry.model_prefix,
            precision=entry.precision, framework=entry.framework, runner=entry.runner,
            multinode=entry.multinode, disagg=entry.disagg, topology=search.topology(), workload=workload,
            concurrency=concurrency, spec_decoding=search.spec_decoding,
            router=Router(name=router.name, version=router.version) if router else None,
            kv_transfer=transfer, kv_offload=offload,
        )  # fmt: skip
