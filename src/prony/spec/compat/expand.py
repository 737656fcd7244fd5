"""Rows of the reference's matrix from the YAML values that it would read: same order, same quirks.

`[BUG n]` names a known fault of the reference that compatibility asks to keep; the native matrix does not share it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prony.spec.dram import DramBudget

JsonRow = dict[str, Any]
"""One row as the reference prints it. It stays inside this package, and what prints it."""

FIXED, AGENTIC = "fixed-seq-len", "agentic-coding"
SEQ_LENS = {"1k1k": (1024, 1024), "8k1k": (8192, 1024)}
MARGIN_TOKENS = 256
AGENTIC_DURATION_S = 3600


@dataclass(frozen=True)
class Limits:
    """What narrows the expansion; None narrows nothing. concurrencies: --conc of test-config."""

    seq_lens: tuple[str, ...] | None = None
    scenarios: tuple[str, ...] | None = None
    step: int = 2
    min_conc: int | None = None
    max_conc: int | None = None
    max_tp: int | None = None
    max_ep: int | None = None
    concurrencies: tuple[int, ...] | None = None

    def wants(self, scenario: str) -> bool:
        """Whether a scenario is asked for."""
        return self.scenarios is None or scenario in self.scenarios

    def wants_lengths(self, isl: int, osl: int) -> bool:
        """Whether fixed lengths are asked for; agentic rows are never filtered by them [BUG 4]."""
        return self.seq_lens is None or (isl, osl) in {SEQ_LENS[name] for name in self.seq_lens}


def rows_of_key(entry: Mapping[str, Any], nodes: Sequence[str], limits: Limits, dram: DramBudget) -> Iterator[JsonRow]:
    """Expand one master entry; every row is repeated per node."""
    scenarios = entry["scenarios"]
    for item in scenarios.get(FIXED) or () if limits.wants(FIXED) else ():
        if limits.wants_lengths(item["isl"], item["osl"]):
            for search in map(_with_roles, item["search-space"]):
                expand = _multi_fixed if entry.get("multinode") else _single_fixed
                yield from expand(entry, item, search, nodes, limits)
    for item in scenarios.get(AGENTIC) or () if limits.wants(AGENTIC) else ():
        for search in map(_with_roles, item["search-space"]):
            expand_agentic = _multi_agentic if "prefill" in search else _single_agentic
            yield from expand_agentic(entry, item, search, nodes, limits, dram)


def _with_roles(search: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write aggregated workers as rows do: as prefill workers, beside no decode workers of equal spread."""
    worker = search.get("worker")
    return search if worker is None else {**search, "prefill": worker, "decode": idle_worker(worker)}


def idle_worker(worker: Mapping[str, Any]) -> JsonRow:
    """Return the decode side of aggregated workers: none, of equal spread."""
    return {**{name: value for name, value in worker.items() if name != "additional-settings"}, "num-worker": 0}


def _head(entry: Mapping[str, Any], node: str) -> JsonRow:
    names = ("image", "model", "model-prefix", "precision", "framework")
    return {**{name: entry[name] for name in names}, "runner": node}


def lengths_name(isl: int, osl: int) -> str:
    """Return 1k1k, 8k1k, or isl_osl."""
    return next((name for name, pair in SEQ_LENS.items() if pair == (isl, osl)), f"{isl}_{osl}")


def _single_fixed(
    entry: Mapping[str, Any], item: Mapping[str, Any], search: Mapping[str, Any], nodes: Sequence[str], limits: Limits
) -> Iterator[JsonRow]:
    ep = _limited_ep(search.get("ep"), limits)
    if ep == _SKIP or not _tp_allowed(int(search["tp"]), limits):
        return
    isl, osl = item["isl"], item["osl"]
    for conc in _single_fixed_concurrencies(search, limits):
        for node in nodes:
            row = {
                **_head(entry, node), "isl": isl, "osl": osl, **_spread(search), "conc": conc,
                "max-model-len": isl + osl + MARGIN_TOKENS, "ep": 1 if ep is None else ep,
                "dp-attn": _or(search.get("dp-attn"), False), "spec-decoding": search.get("spec-decoding", "none"),
                "exp-name": f"{entry['model-prefix']}_{lengths_name(isl, osl)}", "disagg": entry.get("disagg", False),
                "run-eval": False,
            }  # fmt: skip
            yield _with_router(row, entry, search)


def _multi_fixed(
    entry: Mapping[str, Any], item: Mapping[str, Any], search: Mapping[str, Any], nodes: Sequence[str], limits: Limits
) -> Iterator[JsonRow]:
    conc = _multi_fixed_concurrencies(search, limits)
    if not conc:
        return
    isl, osl = item["isl"], item["osl"]
    for node in nodes:
        row = {
            **_head(entry, node), "isl": isl, "osl": osl, "spec-decoding": search.get("spec-decoding", "none"),
            **_workers(search), "conc": conc, "max-model-len": isl + osl + MARGIN_TOKENS,
            "exp-name": f"{entry['model-prefix']}_{lengths_name(isl, osl)}", "disagg": entry.get("disagg", False),
            "run-eval": False,
        }  # fmt: skip
        yield _with_transfer(_with_router(row, entry, search), entry, search)


def _single_agentic(
    entry: Mapping[str, Any], item: Mapping[str, Any], search: Mapping[str, Any], nodes: Sequence[str],
    limits: Limits, dram: DramBudget,
) -> Iterator[JsonRow]:  # fmt: skip
    offload = _or(search.get("kv-offloading"), "none")
    gigabytes = dram.single(entry["runner"], _devices(search), item["dram-utilization"]) if offload == "dram" else 0
    for conc in _agentic_concurrencies(search, limits):
        for node in nodes:
            row = {
                **_head(entry, node), **_spread(search), "ep": _or(search.get("ep"), 1),
                "dp-attn": _or(search.get("dp-attn"), False), "spec-decoding": search.get("spec-decoding", "none"),
                "conc": conc, "kv-offloading": offload, "total-cpu-dram-gb": gigabytes, "duration": AGENTIC_DURATION_S,
                "exp-name": single_agentic_name(entry, search, conc, offload), "scenario-type": AGENTIC,
            }  # fmt: skip
            yield _with_router(_with_backend(row, search), entry, search)


def _multi_agentic(
    entry: Mapping[str, Any], item: Mapping[str, Any], search: Mapping[str, Any], nodes: Sequence[str],
    limits: Limits, dram: DramBudget,
) -> Iterator[JsonRow]:  # fmt: skip
    offload = _or(search.get("kv-offloading"), "none")
    gigabytes = 0
    if offload == "dram":
        gigabytes = dram.multi(entry["runner"], _devices(search["prefill"]), item["dram-utilization"])
    concurrencies = _agentic_concurrencies(search, limits)
    for node in nodes:
        for conc in concurrencies:
            row = {
                **_head(entry, node), "spec-decoding": search.get("spec-decoding", "none"), **_workers(search),
                "conc": [conc], "kv-offloading": offload, "total-cpu-dram-gb": gigabytes,
                "duration": AGENTIC_DURATION_S, "exp-name": multi_agentic_name(entry, search, conc, offload),
                "disagg": entry.get("disagg", False), "scenario-type": AGENTIC,
            }  # fmt: skip
            yield _with_transfer(_with_router(_with_backend(row, search), entry, search), entry, search)


_SKIP = -1


def _devices(spread: Mapping[str, Any]) -> int:
    return int(spread["tp"]) * int(spread.get("pp", 1)) * int(spread.get("pcp-size", 1))


def _limited_ep(ep: Any, limits: Limits) -> Any:
    """Lower ep to --max-ep (never tp, nor agentic or multi-node rows); a bound below 1 skips the entry."""
    if limits.max_ep is None:
        return ep
    if limits.max_ep <= 0:
        return _SKIP
    return limits.max_ep if ep is not None and int(ep) > limits.max_ep else ep


def _tp_allowed(tp: int, limits: Limits) -> bool:
    return limits.max_tp is None or (limits.max_tp > 0 and tp <= limits.max_tp)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _spread(search: Mapping[str, Any]) -> JsonRow:
    return {"tp": search["tp"], **{name: search.get(name, 1) for name in ("pp", "dcp-size", "pcp-size")}}


def _workers(search: Mapping[str, Any]) -> JsonRow:
    return {role: _worker(search[role]) for role in ("prefill", "decode")}


def _worker(worker: Mapping[str, Any]) -> JsonRow:
    return {**worker, **{name: worker.get(name, 1) for name in ("pp", "dcp-size", "pcp-size")}}


def _with_router(row: JsonRow, entry: Mapping[str, Any], search: Mapping[str, Any]) -> JsonRow:
    router = search.get("router") or entry.get("router")
    return {**row, "router": dict(router)} if router else row


def _with_transfer(row: JsonRow, entry: Mapping[str, Any], search: Mapping[str, Any]) -> JsonRow:
    transfer = search.get("kv-p2p-transfer") or entry.get("kv-p2p-transfer")
    return {**row, "kv-p2p-transfer": transfer} if transfer else row


def _with_backend(row: JsonRow, search: Mapping[str, Any]) -> JsonRow:
    backend = search.get("kv-offload-backend")
    return {**row, "kv-offload-backend": dict(backend)} if backend else row


def _offload_name(search: Mapping[str, Any], offload: str) -> str:
    backend = search.get("kv-offload-backend")
    return f"kv{offload}-{backend['name']}" if backend else f"kv{offload}"


def single_agentic_name(entry: Mapping[str, Any], search: Mapping[str, Any], conc: int, offload: str) -> str:
    """Return the exp-name of a single-node agentic row."""
    name = f"{entry['model-prefix']}_tp{search['tp']}_conc{conc}_{_offload_name(search, offload)}"
    spec = search.get("spec-decoding", "none")
    return name if spec == "none" else f"{name}_spec-{spec}"


def multi_agentic_name(entry: Mapping[str, Any], search: Mapping[str, Any], conc: int, offload: str) -> str:
    """Return the exp-name of a multi-node agentic row."""
    roles = "_".join(f"{role[0]}{_worker_name(search[role])}" for role in ("prefill", "decode"))
    name = f"{entry['model-prefix']}_{roles}_conc{conc}"
    return name if offload == "none" else f"{name}_{_offload_name(search, offload)}"


def _worker_name(worker: Mapping[str, Any]) -> str:
    ep = f"ep{worker['ep']}" if worker["ep"] != 1 else ""
    return f"{worker['num-worker']}x{worker['tp']}{ep}{'dpa' if worker['dp-attn'] else ''}"


def _steps(start: int, end: int, step: int) -> list[int]:
    values = []
    value = start
    while value < end:
        values.append(value)
        value *= step
    return [*values, end]


def _asked(values: list[int], limits: Limits) -> list[int]:
    return values if limits.concurrencies is None else [v for v in values if v in limits.concurrencies]


def _single_fixed_concurrencies(search: Mapping[str, Any], limits: Limits) -> list[int]:
    """A list clamps to its --max-conc, a range restarts at --min-conc and ends at --max-conc [BUG 6]."""
    low, high = limits.min_conc, limits.max_conc
    if (low is not None and low <= 0) or (high is not None and high <= 0):
        return []
    values = search.get("conc-list")
    if values is not None:
        kept = [value for value in values if low is None or value >= low]
        if kept and high is not None:
            kept = [value for value in kept if value <= high] or [high]
        return _asked(list(kept), limits)
    start, end = search["conc-start"], search["conc-end"]
    if low is not None:
        if end < low:
            return []
        start = max(start, low)
    if high is not None:
        if start > high:
            return [high]
        end = min(end, high)
    return _asked(_steps(start, end, limits.step), limits)


def _all_concurrencies(search: Mapping[str, Any], limits: Limits) -> list[int]:
    values = search.get("conc-list")
    if values is not None:
        return list(values)
    return _steps(search["conc-start"], search["conc-end"], limits.step)


def _multi_fixed_concurrencies(search: Mapping[str, Any], limits: Limits) -> list[int]:
    low, high = limits.min_conc, limits.max_conc
    values = _all_concurrencies(search, limits)
    if low is not None:
        if low <= 0:
            return []
        values = [value for value in values if value >= low]
    if values and high is not None:
        values = [value for value in values if value <= high] or ([high] if high > 0 else [])
    return _asked(values, limits)


def _agentic_concurrencies(search: Mapping[str, Any], limits: Limits) -> list[int]:
    values = _all_concurrencies(search, limits)
    if limits.min_conc is not None:
        values = [value for value in values if value >= limits.min_conc]
    if limits.max_conc is not None:
        values = [value for value in values if value <= limits.max_conc]
    return _asked(values, limits)
