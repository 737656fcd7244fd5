"""The summary of one load, for people and programs: what `prony load --json` writes."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from prony.base.finding import Finding
from prony.base.model import Frozen
from prony.measure.definitions import DEFINITIONS, Devices, measure_made
from prony.measure.eventlog import EventLog, Fault
from prony.measure.generation import Generation, generation
from prony.measure.measurement import Measurement
from prony.measure.observed import ClientFacts
from prony.measure.registry import STEADY
from prony.measure.steady import Steady, steady_state
from prony.measure.verdicts import client_bound, judge_made
from prony.spec.load import LoadPlan


class Spread(Frozen):
    """Mean and percentiles of one latency, over n values. ci95: of the mean, None when there are too few values."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    n: int
    ci95: tuple[float, float] | None = None


class RequestCounts(Frozen):
    """How the requests ended. by_error: failed ones by the name of their fault."""

    total: int
    completed: int
    failed: int
    by_error: dict[str, int]


class Throughput(Frozen):
    """Tokens per second, and requests per second; None: not measured."""

    input: float | None = None
    output: float | None = None
    total: float | None = None
    request: float | None = None


class Concurrency(Frozen):
    """Requests in flight: asked, and the mean while the loop was full."""

    asked: int
    achieved_mean: float | None = None


class ClientSummary(ClientFacts):
    """What the client says of itself. bound: the client, not the server alone, set the numbers."""

    bound: bool


class SteadySummary(Frozen):
    """The numbers of the steady window; all None when there is none, and `why` says so. Times in s."""

    steady: bool
    why: str = ""
    warmup_s: float | None = None
    duration_s: float | None = None
    ttft_s: Spread | None = None
    itl_s: Spread | None = None
    tpot_s: Spread | None = None
    e2el_s: Spread | None = None
    interactivity: Spread | None = None
    throughput: Throughput = Throughput()


class ScheduledSummary(Frozen):
    """Latencies of an open loop from when requests were due, in s."""

    ttft_s: Spread | None = None
    e2el_s: Spread | None = None


class LoadSummary(Frozen):
    """All that one load measured, over the whole of it and over its steady part. Latencies in s; None: not measured."""

    schema_version: Literal["prony.load-summary/1"] = "prony.load-summary/1"
    definitions: str = DEFINITIONS
    requests: RequestCounts
    duration_s: float | None = None
    ttft_s: Spread | None = None
    itl_s: Spread | None = None
    tpot_s: Spread | None = None
    e2el_s: Spread | None = None
    interactivity: Spread | None = None
    throughput: Throughput
    gpus: int
    tput_per_gpu: float | None = None
    concurrency: Concurrency
    client: ClientSummary
    verdicts: tuple[Finding, ...] = ()
    steady: SteadySummary
    scheduled: ScheduledSummary | None = None
    load: LoadPlan
    seed: int


_Values = Mapping[tuple[str, str], Measurement]


def summarize(log: EventLog, load: LoadPlan, gpus: int = 1) -> LoadSummary:
    """Measure and judge one load. gpus: devices that throughput is divided by.

    Raises MeasurementError when the server's token counts cannot be.
    """
    made = generation(log)
    steady = steady_state(log, made)
    measured = measure_made(log, made, steady, Devices(gpus))
    verdicts = judge_made(log, load, measured, made, steady)
    values = {(one.metric, one.stat): one for one in measured}
    return LoadSummary(
        requests=_requests(log, made),
        duration_s=_value(values, "duration"),
        **_latencies(values),
        throughput=_throughput(values),
        gpus=gpus,
        tput_per_gpu=_value(values, "tput_per_gpu"),
        concurrency=Concurrency(asked=load.concurrency, achieved_mean=_value(values, "concurrency_achieved")),
        client=ClientSummary(**log.client.model_dump(), bound=client_bound(verdicts)),
        verdicts=verdicts,
        steady=_steady(values, steady),
        scheduled=_scheduled(values),
        load=load,
        seed=load.seed,
    )


def _requests(log: EventLog, made: Generation) -> RequestCounts:
    faults, total, completed = log.requests.fault, len(log.requests), len(made)
    counts = {Fault(int(kind)).name.lower(): int((faults == kind).sum()) for kind in np.unique(faults) if kind}
    silent = total - completed - sum(counts.values())
    if silent:
        name = Fault.NO_TOKENS.name.lower()
        counts[name] = counts.get(name, 0) + silent
    return RequestCounts(total=total, completed=completed, failed=total - completed, by_error=counts)


def _value(values: _Values, metric: str) -> float | None:
    found = values.get((metric, "value"))
    return found.value if found else None


def _spread(values: _Values, metric: str) -> Spread | None:
    mean = values.get((metric, "mean"))
    if mean is None or mean.n is None:
        return None
    shown = {stat: values[metric, stat].value for stat in ("p50", "p90", "p95", "p99", "p999")}
    return Spread(mean=mean.value, n=mean.n, ci95=mean.ci95, **shown)


def _latencies(values: _Values, suffix: str = "") -> dict[str, Spread | None]:
    found = {f"{key}_s": _spread(values, f"{key}{suffix}") for key in ("ttft", "itl", "tpot", "e2el")}
    return {**found, "interactivity": _spread(values, f"interactivity{suffix}")}


def _throughput(values: _Values, suffix: str = "") -> Throughput:
    return Throughput(
        input=_value(values, f"input_tput{suffix}"),
        output=_value(values, f"output_tput{suffix}"),
        total=_value(values, f"tput{suffix}"),
        request=_value(values, f"request_rate{suffix}"),
    )


def _steady(values: _Values, steady: Steady) -> SteadySummary:
    if steady.window is None:
        return SteadySummary(steady=False, why=steady.why)
    return SteadySummary(
        steady=True,
        warmup_s=steady.warmup_s,
        duration_s=steady.window.seconds,
        **_latencies(values, STEADY),
        throughput=_throughput(values, STEADY),
    )


def _scheduled(values: _Values) -> ScheduledSummary | None:
    e2el = _spread(values, "e2el_scheduled")
    return ScheduledSummary(ttft_s=_spread(values, "ttft_scheduled"), e2el_s=e2el) if e2el else None
