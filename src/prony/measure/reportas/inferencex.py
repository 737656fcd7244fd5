"""As InferenceX's fork of benchmark_serving reports it (utils/bench_serving/backend_request_func.py)."""

from prony.measure.eventlog import EventLog, Kind
from prony.measure.reportas.chunks import CHOICES, Streams, streams
from prony.measure.reportas.report import Line
from prony.measure.reportas.serving import latency_lines, rate_lines
from prony.spec.load import LoadPlan

LEVELS = (90.0, 99.0, 99.9)


def lines(log: EventLog, load: LoadPlan) -> tuple[Line, ...]:
    """Return its report: any chunk with choices is a token; over chat the usage event moves the end, too."""
    if not log.streamed:
        return ()
    found = seen(log, load)
    return (
        *rate_lines(found, ("request_throughput", "", "output_throughput", "total_token_throughput")),
        *latency_lines(
            found,
            "to the first chunk with choices, an empty one too",
            f"to the last chunk with choices{' or usage' if load.endpoint == 'chat' else ''}",
            LEVELS,
        ),
    )


def seen(log: EventLog, load: LoadPlan) -> Streams:
    """Return the streams as its client sees them."""
    return streams(log, CHOICES, (*CHOICES, Kind.USAGE) if load.endpoint == "chat" else CHOICES)
