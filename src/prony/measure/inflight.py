"""How many requests were in flight, from the event log's send and end instants."""

from typing import NamedTuple

import numpy as np

from prony.measure.eventlog import EventLog, Ints


class Window(NamedTuple):
    """A span of the log's axis, in ns."""

    start: int
    stop: int

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return (self.stop - self.start) / 1e9


def spans(log: EventLog) -> tuple[Ints, Ints]:
    """Return when each sent request was sent and ended, in ns; one that never ended lasts until the last instant."""
    sent, end = log.requests.sent, log.requests.end
    started = sent >= 0
    last = max((int(column.max()) for column in (sent, end, log.events.at) if len(column)), default=0)
    return sent[started], np.where(end < 0, last, end)[started]


def measured_window(log: EventLog) -> Window | None:
    """Return the span from the first request sent to the last end, or None when nothing was sent."""
    sent, end = spans(log)
    return Window(int(sent.min()), int(end.max())) if len(sent) else None


def loaded_window(log: EventLog) -> Window | None:
    """Return the span in which a closed loop is full: from the send that fills it to the last send.

    Ramp and drain are no part of it, so a correct loop shows the asked concurrency however few its requests. A loop
    that is never refilled (no more requests than slots) is full until the first end after its last send. Of an open
    loop, which is never full, it is the span from the first send to the last.
    """
    sent, end = spans(log)
    if not len(sent):
        return None
    ordered = np.sort(sent)
    if log.arrival == "open":
        return Window(int(ordered[0]), int(ordered[-1])) if ordered[-1] > ordered[0] else None
    full = int(ordered[min(log.concurrency, len(ordered)) - 1])
    last = int(ordered[-1])
    if last > full:
        return Window(full, last)
    later = end[end > full]
    return Window(full, int(later.min())) if len(later) else None


def mean_in_flight(log: EventLog, window: Window) -> float:
    """Return the time-weighted mean of requests in flight in a window of positive length."""
    sent, end = spans(log)
    overlap = np.minimum(end, window.stop) - np.maximum(sent, window.start)
    return float(np.maximum(overlap, 0).sum()) / (window.stop - window.start)
