"""What vLLM's `bench serve` and its forks share: TTFT, TPOT, ITL, E2EL and rates of one set of streams."""

from collections.abc import Iterator

from prony.measure.reportas.chunks import Streams
from prony.measure.reportas.report import Line, serving_lines

PER_TOKEN = "per request: (end − first chunk) / (output tokens − 1)"
PER_CHUNK = "per gap between chunks, however many tokens they carry"


def latency_lines(
    found: Streams, ttft: str, e2el: str, levels: tuple[float, ...], end_name: str = "e2el"
) -> Iterator[Line]:
    """Give the four latencies; ttft, e2el: how the tool defines these."""
    yield from serving_lines("ttft", found.first, ttft, levels)
    yield from serving_lines("tpot", found.per_token, PER_TOKEN, levels)
    yield from serving_lines("itl", found.gaps, PER_CHUNK, levels)
    yield from serving_lines(end_name, found.last, e2el, levels)


def rate_lines(found: Streams, names: tuple[str, str, str, str]) -> Iterator[Line]:
    """Give requests, input, output and all tokens per second under these names; one with an empty name is left out."""
    if not found.duration_s:
        return
    tokens_in, tokens_out = found.tokens_in, found.tokens_out
    both = None if tokens_in is None or tokens_out is None else tokens_in + tokens_out
    whole = "of completed requests / time from the first send to the last end"
    for name, amount, unit in zip(
        names, (len(found), tokens_in, tokens_out, both), ("req/s", "tok/s", "tok/s", "tok/s"), strict=True
    ):
        if name and amount is not None:
            yield Line(name=name, value=amount / found.duration_s, unit=unit, definition=whole)
