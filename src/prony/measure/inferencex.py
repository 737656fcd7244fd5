"""Files as InferenceX's tools write them: the raw result of a load, and the row that its dashboard reads.

Formats: utils/bench_serving/benchmark_serving.py and utils/process_result.py of InferenceX at 843c6254. Power fields of
the row (`power_*`, `*_w`, `*_joule*`) are not written.
"""

from datetime import UTC, datetime
from typing import Any, Self

import orjson
from pydantic import Field, model_validator

from prony.base.errors import MeasurementError
from prony.base.model import Frozen
from prony.measure.eventlog import EventLog
from prony.measure.inflight import measured_window
from prony.measure.reportas import inferencex as definitions
from prony.spec.arrival import OpenLoop
from prony.spec.load import LoadPlan

_NEEDED = ("max_concurrency", "total_token_throughput", "output_throughput")


def raw_result(log: EventLog, load: LoadPlan, model_id: str | None = None) -> bytes:
    """Return the raw result of a load as JSON, by InferenceX's definitions: latencies in ms, std over n.

    A metric that nothing was measured of is left out. Raises MeasurementError when nothing completed, or when answers
    were not streamed or not counted, which the format has no way to say.
    """
    window = measured_window(log)
    found = definitions.seen(log, load)
    if not log.streamed or not len(found) or window is None or window.seconds <= 0:
        raise _unsayable("no request was completed" if log.streamed else "the answers were not streamed")
    tokens_in, tokens_out = found.tokens_in, found.tokens_out
    if tokens_in is None or tokens_out is None:
        raise _unsayable("the server did not count its tokens")
    started = log.client.started_unix_s + window.start / 1e9
    fields: dict[str, Any] = {
        "date": datetime.fromtimestamp(started, UTC).strftime("%Y%m%d-%H%M%S"),
        "backend": "openai-chat" if load.endpoint == "chat" else "openai",
        "model_id": model_id,
        "tokenizer_id": model_id,
        "num_prompts": len(log.requests),
        "request_rate": _rate(log, load),
        "burstiness": load.arrival.burstiness if isinstance(load.arrival, OpenLoop) else 1.0,
        "max_concurrency": load.concurrency,
        "duration": window.seconds,
        "benchmark_start_time_unix": started,
        "benchmark_end_time_unix": started + window.seconds,
        "completed": len(found),
        "total_input_tokens": tokens_in,
        "total_output_tokens": tokens_out,
        "request_throughput": len(found) / window.seconds,
        "request_goodput:": None,
        "output_throughput": tokens_out / window.seconds,
        "total_token_throughput": (tokens_in + tokens_out) / window.seconds,
    }
    return orjson.dumps(fields | _latencies(log, load), option=orjson.OPT_INDENT_2)


def _latencies(log: EventLog, load: LoadPlan) -> dict[str, float]:
    return {line.name: line.value for line in definitions.lines(log, load) if line.unit == "ms"}


def _rate(log: EventLog, load: LoadPlan) -> float | str:
    """Return the asked rate, `inf` for a closed loop as they write it; of a changing rate the mean of the schedule."""
    if log.arrival == "closed":
        return "inf"
    if isinstance(load.arrival, OpenLoop) and len(load.arrival.stages) == 1 and load.arrival.stages[0].to_rate is None:
        return load.arrival.stages[0].rate
    due = log.requests.scheduled
    span_s = float(due.max() - due.min()) / 1e9
    return (len(due) - 1) / span_s if span_s > 0 else "inf"


def _unsayable(why: str) -> MeasurementError:
    return MeasurementError(
        f"no raw result for InferenceX: {why}", fix="read the summary (--json) for what was measured"
    )


class Router(Frozen):
    """The request router in front of the servers."""

    name: str
    version: str


class SingleNode(Frozen):
    """One server on one node; its GPUs are tp × pp × pcp."""

    tp: int = Field(gt=0)
    ep: int = Field(gt=0)
    dp_attention: bool
    pp: int = Field(default=1, gt=0)
    dcp: int = Field(default=1, gt=0)
    pcp: int = Field(default=1, gt=0)


class Pool(Frozen):
    """The servers of one role on several nodes, all of one shape."""

    gpus: int = Field(ge=0)
    workers: int = Field(ge=0)
    tp: int = Field(gt=0)
    ep: int = Field(gt=0)
    dp_attention: bool
    pp: int = Field(default=1, gt=0)
    dcp: int = Field(default=1, gt=0)
    pcp: int = Field(default=1, gt=0)
    hardware: str | None = None


class MultiNode(Frozen):
    """Prefill and decode pools; decode without GPUs: the prefill pool does both."""

    prefill: Pool
    decode: Pool

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if not self.prefill.gpus:
            raise ValueError("at least one prefill GPU is needed")
        if (self.prefill.hardware is None) != (self.decode.hardware is None):
            raise ValueError("hardware is of both pools or of none")
        return self


class AggFacts(Frozen):
    """What the row says beside the raw result: how the model was served."""

    hw: str
    image: str
    model_prefix: str
    framework: str
    precision: str
    spec_decoding: str
    isl: int
    osl: int
    disagg: bool
    deployment: SingleNode | MultiNode
    recipe_fingerprint: str = ""
    router: Router | None = None
    kv_p2p_transfer: str | None = None

    @model_validator(mode="after")
    def _spans_nodes(self) -> Self:
        if self.disagg and isinstance(self.deployment, SingleNode):
            raise ValueError("a disaggregated deployment spans several nodes")
        return self


def agg_row(raw: bytes, facts: AggFacts) -> bytes:
    """Return the row of a raw result as JSON: s instead of ms, tok/s per GPU, interactivity as 1 / TPOT.

    `std_intvty` is 1 / std TPOT as they have it, and left out where that is 0. Raises MeasurementError when the raw
    result is none.
    """
    try:
        bench = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _no_raw_result(str(error)) from None
    missing = [key for key in _NEEDED if not isinstance(bench, dict) or not isinstance(bench.get(key), int | float)]
    if missing:
        raise _no_raw_result(f"no number for {', '.join(missing)}")
    row: dict[str, Any] = {
        "hw": facts.hw,
        "conc": bench["max_concurrency"],
        "image": facts.image,
        "model": bench.get("model_id"),
        "infmax_model_prefix": facts.model_prefix,
        "framework": facts.framework,
        "precision": facts.precision,
        "spec_decoding": facts.spec_decoding,
        "disagg": facts.disagg,
        "recipe_fingerprint": facts.recipe_fingerprint,
        "isl": facts.isl,
        "osl": facts.osl,
    }
    if facts.router is not None:
        row["router"] = facts.router.model_dump()
    if facts.kv_p2p_transfer:
        row["kv_p2p_transfer"] = facts.kv_p2p_transfer
    total, output = bench["total_token_throughput"], bench["output_throughput"]
    if isinstance(facts.deployment, SingleNode):
        row |= _single(facts.deployment, total, output)
    else:
        row |= _multi(facts.deployment, total, output)
    return orjson.dumps(row | _in_seconds(bench), option=orjson.OPT_INDENT_2)


def _no_raw_result(why: str) -> MeasurementError:
    return MeasurementError(f"not a raw result of a load: {why}", fix="write it again: prony load --report-as …")


def _single(node: SingleNode, total: float, output: float) -> dict[str, Any]:
    gpus = node.tp * node.pp * node.pcp
    return {
        "is_multinode": False,
        "tp": node.tp,
        "pp": node.pp,
        "dcp_size": node.dcp,
        "pcp_size": node.pcp,
        "ep": node.ep,
        "dp_attention": _flag(node.dp_attention),
        "tput_per_gpu": total / gpus,
        "output_tput_per_gpu": output / gpus,
        "input_tput_per_gpu": (total - output) / gpus,
    }


def _multi(nodes: MultiNode, total: float, output: float) -> dict[str, Any]:
    prefill, decode = nodes.prefill, nodes.decode
    row = {"is_multinode": True, **_pool("prefill", prefill), **_pool("decode", decode)}
    row |= {
        "num_prefill_gpu": prefill.gpus,
        "num_decode_gpu": decode.gpus,
        "tput_per_gpu": total / (prefill.gpus + decode.gpus),
        "output_tput_per_gpu": output / (decode.gpus or prefill.gpus),
        "input_tput_per_gpu": (total - output) / prefill.gpus,
    }
    if prefill.hardware is not None:
        row |= {"prefill_hw": prefill.hardware, "decode_hw": decode.hardware}
    return row


def _pool(role: str, pool: Pool) -> dict[str, Any]:
    """Give a pool's fields; one without GPUs has no shape of its own."""
    shape = pool if pool.gpus else None
    return {
        f"{role}_tp": shape.tp if shape else 0,
        f"{role}_pp": shape.pp if shape else 1,
        f"{role}_dcp_size": shape.dcp if shape else 1,
        f"{role}_pcp_size": shape.pcp if shape else 1,
        f"{role}_ep": shape.ep if shape else 0,
        f"{role}_dp_attention": _flag(pool.dp_attention),
        f"{role}_num_workers": pool.workers,
    }


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _in_seconds(bench: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in bench.items():
        if not key.endswith("_ms") or not isinstance(value, int | float):
            continue
        name = key.removesuffix("_ms")
        found[name] = value / 1000.0
        if "tpot" in name and value:
            found[name.replace("tpot", "intvty")] = 1000.0 / value
    return found
