"""As sglang's bench_serving reports it (python/sglang/bench_serving.py, benchmark/backends/oai_chat_client.py)."""

from prony.measure.eventlog import EventLog, Kind
from prony.measure.reportas.chunks import streams
from prony.measure.reportas.report import Line
from prony.measure.reportas.serving import latency_lines, rate_lines

_LEVELS = (90.0, 95.0, 99.0)
_TEXT = (Kind.CONTENT, Kind.REASONING)


def lines(log: EventLog) -> tuple[Line, ...]:
    """Return its report: a chunk with text or reasoning is a token; the end is the last line, [DONE] included."""
    if not log.streamed:
        return ()
    found = streams(log, _TEXT, tuple(Kind))
    return (
        *rate_lines(found, ("request_throughput", "input_throughput", "output_throughput", "total_throughput")),
        *latency_lines(
            found,
            "to the first chunk with text",
            "to the last line of the stream, [DONE] too",
            _LEVELS,
            end_name="e2e_latency",
        ),
    )
