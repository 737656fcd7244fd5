"""As guidellm reports it (src/guidellm/schemas/base/request_stats.py, benchmark/schemas/metrics.py)."""

from collections.abc import Iterator

import numpy as np

from prony.measure.eventlog import EventLog, Ints
from prony.measure.reportas.chunks import TOKENS, Streams, streams
from prony.measure.reportas.report import Line
from prony.measure.reportas.serving import rate_lines
from prony.measure.statistics import Floats

_LEVELS = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def lines(log: EventLog) -> tuple[Line, ...]:
    """Return its report: its TPOT includes the first token, its ITL is one mean per request, weighted by tokens."""
    found = streams(log, TOKENS)
    rates = tuple(rate_lines(found, ("requests_per_second", "", "output_tokens_per_second", "tokens_per_second")))
    latency = tuple(_lines("request_latency", found.end, None, "s", "to the end of the answer"))
    return (*rates, *latency, *_per_token(found), *(_first(found) if log.streamed else ()))


def _per_token(found: Streams) -> Iterator[Line]:
    some = found.output_tokens > 0
    yield from _lines(
        "time_per_output_token_ms",
        (found.last[some] / found.output_tokens[some]) * 1e3,
        found.output_tokens[some],
        "ms",
        "per request: (last token − start) / output tokens, TTFT included; weighted by output tokens",
    )


def _first(found: Streams) -> Iterator[Line]:
    some = found.output_tokens > 1
    yield from _lines("time_to_first_token_ms", found.first * 1e3, None, "ms", "to the first token")
    yield from _lines(
        "inter_token_latency_ms",
        found.per_token * 1e3,
        found.output_tokens[some] - 1,
        "ms",
        "per request: (last token − first) / (output tokens − 1); weighted by output tokens − 1",
    )


def _lines(name: str, values: Floats, weights: Ints | None, unit: str, definition: str) -> Iterator[Line]:
    """Give the mean, and as a percentile the least value that its share of the weight does not exceed."""
    if not len(values):
        return
    weight = np.ones(len(values)) if weights is None else weights.astype(np.float64)
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    found = {"mean": float(np.average(values, weights=weight))}
    for stat, level in _LEVELS.items():
        found[stat] = float(values[order][min(int(np.searchsorted(share, level)), len(values) - 1)])
    for stat, value in found.items():
        yield Line(name=f"{name}.{stat}", value=value, unit=unit, definition=definition)
