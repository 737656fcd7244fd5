"""As Prony itself reports it: the registry's metrics."""

from prony.measure.definitions import measure
from prony.measure.eventlog import EventLog
from prony.measure.registry import metric
from prony.measure.reportas.report import Line


def lines(log: EventLog) -> tuple[Line, ...]:
    """Return all that was measured, in the registry's units."""
    return tuple(
        Line(
            name=found.metric if found.stat == "value" else f"{found.metric}.{found.stat}",
            value=found.value,
            unit=metric(found.metric).unit,
            definition=metric(found.metric).definition,
        )
        for found in measure(log, 1)
    )
