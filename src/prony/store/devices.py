"""How many devices a published row really used: recorded counts, checked against topology and throughputs.

Two mistakes of the reference's first result mapper are corrected, and each correction is told as a finding:
aggregated rows count tp * ep devices although expert-parallel ranks live inside the tensor-parallel group, and
disaggregated rows of its first schema carry the total of both roles as the count of each.
"""

import math
from dataclasses import dataclass

from prony.base.finding import Finding
from prony.spec.point import RoleName, RolePool, Topology
from prony.store.rawrow import RawPool, RawRow

# Published throughputs give the prefill share of the devices to 1e-15; 1e-2 devices is far from both 0 and 1.
_WHOLE = 0.01
_IDENTITY = 0.01


@dataclass(frozen=True)
class Devices:
    """A row's topology and devices; prefill and decode are None for an aggregated one."""

    topology: Topology
    total: int
    prefill: int | None = None
    decode: int | None = None
    finding: Finding | None = None


def devices_of(raw: RawRow) -> Devices:
    """Return the devices of a published row, corrected where its own numbers show how."""
    if raw.disagg and raw.decode.gpus != 0:
        return _disaggregated(raw)
    return _aggregated(raw)


def _aggregated(raw: RawRow) -> Devices:
    pool = raw.prefill
    made = _role_pool("agg", pool, None)
    topology = Topology(pools=(made,))
    recorded = pool.gpus if pool.gpus is not None else made.gpus
    if pool.ep > 1 and recorded == made.gpus * pool.ep:
        finding = _correction(
            f"the source counts {recorded} GPUs (TP {pool.tp} × EP {pool.ep}); expert-parallel ranks live inside the"
            f" tensor-parallel group, so {made.gpus} are used here. Throughput per GPU was right: it was divided by"
            f" {made.gpus}",
            f'{{"num_prefill_gpu": {recorded}, "num_decode_gpu": {raw.decode.gpus}}}',
        )
        return Devices(topology=topology, total=made.gpus, finding=finding)
    return Devices(topology=topology, total=recorded)


def _disaggregated(raw: RawRow) -> Devices:
    prefill, decode = raw.prefill.gpus, raw.decode.gpus
    finding = None
    split = prefill_share(raw)
    if split is not None and prefill is not None:
        finding = _correction(
            f"the source gives each role the total of {prefill} GPUs; its throughputs per GPU hold only for"
            f" {split} prefill + {prefill - split} decode GPUs, which are used here (how each role is parallelised"
            " is not recorded)",
            f'{{"num_prefill_gpu": {prefill}, "num_decode_gpu": {decode}}}',
        )
        prefill, decode = split, prefill - split
    pools = _role_pool("prefill", raw.prefill, prefill), _role_pool("decode", raw.decode, decode)
    prefill = prefill if prefill is not None else pools[0].gpus
    decode = decode if decode is not None else pools[1].gpus
    return Devices(
        topology=Topology(pools=pools), total=prefill + decode, prefill=prefill, decode=decode, finding=finding
    )


def prefill_share(raw: RawRow) -> int | None:
    """Return how many prefill devices a row's throughputs imply, when they contradict equal recorded counts.

    total = (in * P + out * D) / (P + D) gives P / (P + D) = (total - out) / (in - out). Recorded is n for both roles;
    when n * that share is a whole number, n was the total of both.
    """
    n = raw.prefill.gpus
    said = [raw.metrics.get(f"{name}tput_per_gpu") for name in ("input_", "output_", "")]
    numbers = [float(value) for value in said if isinstance(value, int | float)]
    if not n or n != raw.decode.gpus or raw.prefill.workers or len(numbers) < len(said):
        return None
    tokens_in, tokens_out, total = numbers
    if abs((tokens_in + tokens_out) / 2 - total) <= _IDENTITY * total or tokens_in == tokens_out:
        return None
    share = (total - tokens_out) / (tokens_in - tokens_out) * n
    if not math.isfinite(share):
        return None
    whole = round(share)
    return whole if abs(share - whole) < _WHOLE and 0 < whole < n else None


def _role_pool(role: RoleName, pool: RawPool, gpus: int | None) -> RolePool:
    """Lay out a role: what its count has beyond workers * tp * pp * pcp is data parallelism."""
    replicas = pool.workers or 1
    tp = (pool.tp if pool.workers or gpus is None else gpus) or 1
    one = replicas * tp * pool.pp * pool.pcp
    return RolePool(
        role=role,
        replicas=replicas,
        tp=tp,
        pp=pool.pp,
        dcp=pool.dcp,
        pcp=pool.pcp,
        dp=gpus // one if gpus and gpus % one == 0 else 1,
        ep=pool.ep or None,
        dp_attention=pool.dp_attention,
        hardware=pool.hardware,
    )


def _correction(message: str, evidence: str) -> Finding:
    return Finding(
        rule="row/gpu-count-corrected",
        severity="warn",
        message=f"{message}; the recorded counts are kept as evidence",
        evidence=evidence,
    )
