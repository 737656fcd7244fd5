"""As aiperf reports it (src/aiperf/metrics/types)."""

from collections.abc import Iterator

import numpy as np

from prony.measure.eventlog import EventLog
from prony.measure.reportas.chunks import TOKENS, Streams, streams
from prony.measure.reportas.report import Line
from prony.measure.reportas.serving import rate_lines
from prony.measure.statistics import Floats

_LEVELS = (50.0, 90.0, 95.0, 99.0)


def lines(log: EventLog) -> tuple[Line, ...]:
    """Return its report: what others call TPOT is its ITL, and their ITL its inter chunk latency."""
    found = streams(log, TOKENS)
    rates = tuple(rate_lines(found, ("request_throughput", "", "output_token_throughput", "")))
    latency = tuple(_lines("request_latency", found.last * 1e3, "ms", "to the last response with content"))
    return (*rates, *latency, *(_streamed(found) if log.streamed else ()))


def _streamed(found: Streams) -> Iterator[Line]:
    per_token = between_tokens_s(found)
    yield from _lines("time_to_first_token", found.first * 1e3, "ms", "to the first response with content")
    yield from _lines(
        "inter_token_latency",
        per_token * 1e3,
        "ms",
        "per request: (latency − TTFT) / (output tokens − those of the first chunk)",
    )
    yield from _lines("inter_chunk_latency", found.gaps * 1e3, "ms", "per gap between responses with content")
    yield from _lines(
        "output_token_throughput_per_user",
        1 / per_token[per_token > 0],
        "tokens/sec/user",
        "per request: 1 / inter token latency",
    )


def between_tokens_s(found: Streams) -> Floats:
    """Return its inter-token latency of each request of at least two tokens, in s.

    The first chunk counts as one token when the server does not say, or says as many as there are.
    """
    some = found.output_tokens > 1
    told, output = found.first_tokens[some], found.output_tokens[some]
    first = np.where((told > 0) & (told < output), told, 1)
    return np.asarray((found.last - found.first)[some] / (output - first), dtype=np.float64)


def _lines(name: str, values: Floats, unit: str, definition: str) -> Iterator[Line]:
    if not len(values):
        return
    found = {"avg": values.mean(), "min": values.min(), "max": values.max()}
    found |= {f"p{level:g}": value for level, value in zip(_LEVELS, np.percentile(values, _LEVELS), strict=True)}
    for stat, value in found.items():
        yield Line(name=f"{name}.{stat}", value=float(value), unit=unit, definition=definition)
