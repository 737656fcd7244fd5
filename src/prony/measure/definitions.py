"""What every number means: pure functions from the event log to measurements.

All instants come from the log (ns), all values go out in the registry's units. A request counts as completed when it
ended without a fault and brought generated tokens. What cannot be computed is absent, never 0.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prony.base.errors import MeasurementError
from prony.measure.eventlog import NEVER, EventLog, Fault, Ints, Kind
from prony.measure.inflight import loaded_window, mean_in_flight, measured_window
from prony.measure.observed import EngineFacts
from prony.measure.result import Measurement
from prony.measure.statistics import QUANTILES, Floats, batch_means_interval, percentiles

DEFINITIONS = "prony.definitions/1"
MOST_TOKENS = 200_000_000
FEWEST_DRAFTS = 20
GENERATING = (Kind.CONTENT, Kind.REASONING, Kind.TOOL)


@dataclass(frozen=True)
class Generation:
    """The generating events of completed requests, and the completed requests themselves.

    at, tokens, owner: per arrival: ns, tokens it brought (-1: unknown), index into the columns below. Events of a
    request that share a stamp came in one read and are one arrival.
    sent, first, last: per completed request, ns; events: how many arrivals; input_tokens, output_tokens: as
    the server counted them (-1: it did not say).
    """

    at: Ints
    tokens: Ints
    owner: Ints
    sent: Ints
    first: Ints
    last: Ints
    events: Ints
    input_tokens: Ints
    output_tokens: Ints

    def __len__(self) -> int:
        return len(self.sent)


def measure(
    log: EventLog, gpus_used: int, gpus_prefill: int | None = None, gpus_decode: int | None = None
) -> tuple[Measurement, ...]:
    """Return all that one load measured.

    Percentiles are linear (type 7); `std` has n - 1 in its denominator; `ci95` of a mean is by batch means in order of
    time. Per-role throughputs are given when the role's devices are.
    """
    made = generation(log)
    found = list(_system(log, made, gpus_used, gpus_prefill, gpus_decode))
    if len(made):
        found += _latencies(made)
    if log.engine is not None:
        found += _acceptance(log.engine)
    return tuple(found)


def generation(log: EventLog) -> Generation:
    """Find the completed requests of a log and their generating events, with the tokens of each."""
    requests, events = log.requests, log.events
    generating = np.isin(events.kind, GENERATING)
    generating &= (requests.fault[events.request] == Fault.OK) & (requests.sent[events.request] >= 0)
    where = np.flatnonzero(generating)
    where = where[np.argsort(events.request[where], kind="stable")]
    done, starts, counts = np.unique(events.request[where], return_index=True, return_counts=True)
    owner = np.repeat(np.arange(len(done)), counts)
    at = events.at[where]
    output, per_event = _tokens(events.tokens[where], owner, starts, counts, requests.output_counted[done])
    arrivals = np.flatnonzero(np.diff(at, prepend=NEVER) | np.diff(owner, prepend=NEVER))
    brought = np.add.reduceat(per_event, arrivals) if len(arrivals) else per_event
    return Generation(
        at=at[arrivals],
        tokens=np.maximum(brought, NEVER),
        owner=owner[arrivals],
        sent=requests.sent[done],
        first=at[starts],
        last=at[starts + counts - 1],
        events=np.bincount(owner[arrivals], minlength=len(done)),
        input_tokens=requests.input_counted[done],
        output_tokens=output,
    )


def _tokens(said: Ints, owner: Ints, starts: Ints, counts: Ints, counted: Ints) -> tuple[Ints, Ints]:
    """Return output tokens per request and per event.

    An event carries what the server said, when it said so for every event of the request and the sum is its usage.
    Otherwise the usage T is spread evenly over the E events: event j (from 0) carries ceil((j+1)T/E) - ceil(jT/E),
    which sums to T.
    """
    if not len(counts):
        return counted, said
    said_all = np.minimum.reduceat(said, starts) >= 0
    said_sum = np.add.reduceat(said, starts)
    total = np.where((counted < 0) & said_all, said_sum, counted)
    step = np.arange(len(said)) - np.repeat(starts, counts)
    whole, share = total[owner], counts[owner]
    even = -(-(step + 1) * whole // share) + (-step * whole // share)
    spread = np.where(whole < 0, -1, even)
    return total, np.where((said_all & (said_sum == total))[owner], said, spread)


def ttft_s(made: Generation) -> Floats:
    """Return the time to first token of each completed request, in order of arrival of that token."""
    return ((made.first - made.sent) / 1e9)[np.argsort(made.first, kind="stable")]


def e2el_s(made: Generation) -> Floats:
    """Return the end-to-end latency of each completed request, in order of its end."""
    return ((made.last - made.sent) / 1e9)[np.argsort(made.last, kind="stable")]


def tpot_s(made: Generation) -> Floats:
    """Return the time per output token of each completed request, in order of its end.

    Requests of one token, of unknown tokens, or whose tokens all came in one event have none.
    """
    some = (made.output_tokens > 1) & (made.events > 1)
    value = (made.last - made.first)[some] / 1e9 / (made.output_tokens[some] - 1)
    return np.asarray(value[np.argsort(made.last[some], kind="stable")], dtype=np.float64)


def itl_s(made: Generation) -> Floats:
    """Return every inter-token latency in order of time: k values of g/k for an arrival of k tokens after a gap g.

    Raises MeasurementError when the counted tokens are more than any load has.
    """
    carrying = made.tokens > 0
    gap, tokens = _gaps(made, carrying)
    if float(tokens.sum(dtype=np.float64)) > MOST_TOKENS:
        raise MeasurementError(
            f"the server counts more than {MOST_TOKENS:,} tokens in one load",
            fix="its token counts are wrong: look at the usage events in its streams",
        )
    return np.repeat(gap / np.maximum(tokens, 1), tokens)


def event_gap_s(made: Generation) -> Floats:
    """Return every gap between arrivals of a request in order of time, whatever tokens they bring."""
    return _gaps(made, np.ones(len(made.at), dtype=np.bool_))[0]


def _gaps(made: Generation, some: NDArray[np.bool_]) -> tuple[Floats, Ints]:
    at, owner, tokens = made.at[some], made.owner[some], made.tokens[some]
    within = owner[1:] == owner[:-1]
    gap, ended, carried = (np.diff(at) / 1e9)[within], at[1:][within], tokens[1:][within]
    order = np.argsort(ended, kind="stable")
    return gap[order], carried[order]


def _latencies(made: Generation) -> Iterator[Measurement]:
    yield from _distribution("ttft", ttft_s(made))
    yield from _distribution("e2el", e2el_s(made))
    yield from _distribution("itl", itl_s(made))
    yield from _distribution("event_gap", event_gap_s(made))
    tpot = tuple(_distribution("tpot", tpot_s(made)))
    yield from tpot
    yield from filter(None, map(_interactivity, tpot))


def _distribution(metric: str, values: Floats) -> Iterator[Measurement]:
    """Give mean, std and percentiles of values in order of time."""
    n = len(values)
    if not n:
        return
    yield Measurement(metric=metric, stat="mean", value=float(values.mean()), n=n, ci95=batch_means_interval(values))
    if n > 1:
        yield Measurement(metric=metric, stat="std", value=float(values.std(ddof=1)), n=n)
    for quantile, value in zip(QUANTILES, percentiles(values), strict=True):
        yield Measurement(metric=metric, stat=quantile.stat, value=float(value), n=n, supported=n >= quantile.needs)


def _interactivity(tpot: Measurement) -> Measurement | None:
    """Turn a statistic of TPOT into the same of interactivity; a standard deviation has no reciprocal."""
    if tpot.stat == "std" or tpot.value <= 0:
        return None
    low_high = None
    if tpot.ci95 and tpot.ci95[0] > 0:
        low_high = (1 / tpot.ci95[1], 1 / tpot.ci95[0])
    return tpot.model_copy(update={"metric": "interactivity", "value": 1 / tpot.value, "ci95": low_high})


def _system(
    log: EventLog, made: Generation, gpus: int, gpus_prefill: int | None, gpus_decode: int | None
) -> Iterator[Measurement]:
    n = len(made)
    yield _value("requests_completed", n, len(log.requests))
    yield _value("requests_failed", len(log.requests) - n, len(log.requests))
    loaded, window = loaded_window(log), measured_window(log)
    if loaded:
        yield _value("concurrency_achieved", mean_in_flight(log, loaded), len(log.requests))
    if window is None or window.seconds <= 0:
        return
    yield _value("duration", window.seconds, len(log.requests))
    if n:
        yield _value("request_rate", n / window.seconds, n)
        yield from _throughput(made, window.seconds, gpus, gpus_prefill, gpus_decode)


def _throughput(
    made: Generation, seconds: float, gpus: int, gpus_prefill: int | None, gpus_decode: int | None
) -> Iterator[Measurement]:
    n = len(made)
    tokens_in, tokens_out = _sum(made.input_tokens), _sum(made.output_tokens)
    for name, tokens, role, devices in (
        ("input", tokens_in, "prefill", gpus_prefill),
        ("output", tokens_out, "decode", gpus_decode),
    ):
        if tokens is None:
            continue
        yield _value(f"{name}_tokens", tokens, n)
        yield _value(f"{name}_tput", tokens / seconds, n)
        yield _value(f"{name}_tput_per_gpu", tokens / seconds / gpus, n)
        if devices:
            yield _value(f"{name}_tput_per_{role}_gpu", tokens / seconds / devices, n)
    if tokens_in is not None and tokens_out is not None:
        yield _value("tput", (tokens_in + tokens_out) / seconds, n)
        yield _value("tput_per_gpu", (tokens_in + tokens_out) / seconds / gpus, n)


def _sum(tokens: Ints) -> int | None:
    """Add up tokens; one request whose tokens are unknown leaves the sum unknown."""
    return None if (tokens < 0).any() else int(tokens.sum())


def _acceptance(engine: EngineFacts) -> Iterator[Measurement]:
    """Give 1 + accepted / drafts; n is the drafts.

    The interval takes drafts as independent, so it is a lower bound of the doubt. Position i counts the drafts of which
    more than i tokens were accepted, so the mean square is the sum of (2i + 1) of these shares.
    """
    drafts, accepted = engine.drafts, engine.accepted
    if not drafts or accepted is None:
        return
    mean, at, interval = accepted / drafts, engine.accepted_at, None
    if drafts >= FEWEST_DRAFTS and at and sum(at) == accepted:
        square = sum((2 * position + 1) * count for position, count in enumerate(at)) / drafts
        half = 1.96 * math.sqrt(max(0.0, square - mean * mean) / (drafts - 1))
        interval = (1 + mean - half, 1 + mean + half)
    yield Measurement(metric="acceptance_length", stat="value", value=1 + mean, n=drafts, ci95=interval)


def _value(metric: str, value: float, n: int) -> Measurement:
    return Measurement(metric=metric, stat="value", value=float(value), n=n)
