"""Rows made by hand, for tests of what keeps them."""

from prony.measure.result import Measurement, Row
from prony.spec.point import RolePool, Topology


def make_row(key: str = "a" * 64, **changes: object) -> Row:
    row = Row(
        key=key, origin="measured", source="here", model="HuggingFaceTB/SmolLM2-135M-Instruct", model_prefix="smollm2",
        hardware="cpu", framework="llamacpp", precision="q4_1", spec_decoding="none", disagg=False, multinode=False,
        topology=Topology(pools=(RolePool(role="agg"),)), gpus_used=1, workload="fixed-seq-len", isl=128, osl=32,
        concurrency=1, measured_at="2026-12-01T02:43:52Z", client="prony",
        measurements=(Measurement(metric="tput_per_gpu", stat="value", value=123.4, n=8),),
    )  # fmt: skip
    return row.model_copy(update=changes)


def measured(value: float) -> tuple[Measurement, ...]:
    return (Measurement(metric="tput_per_gpu", stat="value", value=value, n=8),)
