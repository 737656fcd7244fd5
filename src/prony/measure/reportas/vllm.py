"""As `vllm bench serve` reports it (vllm/benchmarks/lib/endpoint_request_func.py, serve.py)."""

from prony.measure.eventlog import EventLog
from prony.measure.reportas.chunks import CHOICES, streams
from prony.measure.reportas.report import Line
from prony.measure.reportas.serving import latency_lines, rate_lines

_LEVELS = (90.0, 95.0, 99.0)


def lines(log: EventLog) -> tuple[Line, ...]:
    """Return its report: any chunk with choices is a token, also one that only names the role."""
    if not log.streamed:
        return ()
    found = streams(log, CHOICES)
    return (
        *rate_lines(found, ("request_throughput", "", "output_throughput", "total_token_throughput")),
        *latency_lines(
            found,
            "to the first chunk with choices, an empty one too",
            "to the last chunk with choices",
            _LEVELS,
        ),
    )
