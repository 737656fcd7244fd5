"""The generating events of completed requests, and the latencies that follow from them.

A request counts as completed when it ended without a fault and brought generated tokens.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prony.base.errors import MeasurementError
from prony.measure.eventlog import NEVER, EventLog, Fault, Ints, Kind
from prony.measure.inflight import Window
from prony.measure.statistics import Floats

MOST_TOKENS = 200_000_000
GENERATING = (Kind.CONTENT, Kind.REASONING, Kind.TOOL)
_IS_GENERATING: NDArray[np.bool_] = np.isin(np.arange(len(Kind)), GENERATING)


@dataclass(frozen=True)
class Generation:
    """The generating events of completed requests, and the completed requests themselves.

    at, tokens, owner: per arrival: ns, tokens it brought (-1: unknown), index into the columns below. Events of a
    request that share a stamp came in one read and are one arrival.
    scheduled, sent, first, last: per completed request, ns; events: how many arrivals; input_tokens, output_tokens: as
    the server counted them (-1: it did not say).
    """

    at: Ints
    tokens: Ints
    owner: Ints
    scheduled: Ints
    sent: Ints
    first: Ints
    last: Ints
    events: Ints
    input_tokens: Ints
    output_tokens: Ints

    def __len__(self) -> int:
        return len(self.sent)


def generation(log: EventLog) -> Generation:
    """Find the completed requests of a log and their generating events, with the tokens of each."""
    requests, events = log.requests, log.events
    completed = (requests.fault == Fault.OK) & (requests.sent >= 0)
    where = np.flatnonzero(_IS_GENERATING[events.kind] & completed[events.request])
    of = events.request[where]
    if (of[1:] < of[:-1]).any():
        order = np.argsort(of, kind="stable")
        where, of = where[order], of[order]
    starts = np.flatnonzero(np.diff(of, prepend=NEVER))
    done, counts = of[starts], np.diff(starts, append=len(of))
    owner = np.repeat(np.arange(len(done)), counts)
    at = events.at[where]
    output, per_event = _tokens(events.tokens[where], owner, starts, counts, requests.output_counted[done])
    arrivals = np.flatnonzero(np.diff(at, prepend=NEVER) | np.diff(owner, prepend=NEVER))
    if len(arrivals) < len(at):
        at, owner, per_event = at[arrivals], owner[arrivals], np.add.reduceat(per_event, arrivals)
    first, last = events.at[where[starts]], events.at[where[starts + counts - 1]]
    return Generation(
        at=at,
        tokens=np.maximum(per_event, NEVER),
        owner=owner,
        scheduled=requests.scheduled[done],
        sent=requests.sent[done],
        first=first,
        last=last,
        events=np.bincount(owner, minlength=len(done)),
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
    if not said_all.any() and (total == counts).all():
        return total, np.ones_like(said)
    step = np.arange(len(said)) - np.repeat(starts, counts)
    whole, share = total[owner], counts[owner]
    even = -(-(step + 1) * whole // share) + (-step * whole // share)
    spread = np.where(whole < 0, -1, even)
    return total, np.where((said_all & (said_sum == total))[owner], said, spread)


class Timed(NamedTuple):
    """Values in order of the instants (ns) at which they were complete."""

    values: Floats
    at: Ints

    def within(self, window: Window) -> Floats:
        """Return the values that were complete in a window."""
        low, high = np.searchsorted(self.at, window.start, "left"), np.searchsorted(self.at, window.stop, "right")
        return self.values[low:high]


class Gaps(NamedTuple):
    """Gaps (s) between arrivals of a request in order of their ends (ns), with the tokens that ended each."""

    gap: Floats
    at: Ints
    tokens: Ints


def _timed(ns: Ints, at: Ints) -> Timed:
    order = np.argsort(at, kind="stable")
    return Timed((ns / 1e9)[order], at[order])


def ttft(made: Generation) -> Timed:
    """Return the time to first token (s) of each completed request."""
    return _timed(made.first - made.sent, made.first)


def e2el(made: Generation) -> Timed:
    """Return the end-to-end latency (s) of each completed request."""
    return _timed(made.last - made.sent, made.last)


def ttft_scheduled(made: Generation) -> Timed:
    """Return the time from when each completed request was due to its first token (s)."""
    return _timed(made.first - made.scheduled, made.first)


def e2el_scheduled(made: Generation) -> Timed:
    """Return the time from when each completed request was due to its last token (s)."""
    return _timed(made.last - made.scheduled, made.last)


def tpot(made: Generation) -> Timed:
    """Return the time per output token (s) of each completed request.

    Requests of one token, of unknown tokens, or whose tokens all came in one event have none.
    """
    some = (made.output_tokens > 1) & (made.events > 1)
    value = _timed((made.last - made.first)[some], made.last[some])
    order = np.argsort(made.last[some], kind="stable")
    return Timed(value.values / (made.output_tokens[some] - 1)[order], value.at)


def gaps(made: Generation) -> Gaps:
    """Return every gap between arrivals of a request, whatever tokens they bring."""
    return _gaps(made.at, made.owner, made.tokens)


def token_gaps(made: Generation, every: Gaps) -> Gaps:
    """Return the gaps between arrivals that bring tokens; `every`: those between all arrivals.

    Raises MeasurementError when the counted tokens are more than any load has.
    """
    carrying = made.tokens > 0
    if float(made.tokens[carrying].sum(dtype=np.float64)) > MOST_TOKENS:
        raise MeasurementError(
            f"the server counts more than {MOST_TOKENS:,} tokens in one load",
            fix="its token counts are wrong: look at the usage events in its streams",
        )
    return every if carrying.all() else _gaps(made.at[carrying], made.owner[carrying], made.tokens[carrying])


def itl(found: Gaps, window: Window | None = None) -> Floats:
    """Return inter-token latencies (s) in order of time: k values of g/k for an arrival of k tokens after a gap g.

    window: only of gaps that ended in it.
    """
    gap, tokens = found.gap, found.tokens
    if window is not None:
        low, high = np.searchsorted(found.at, window.start, "left"), np.searchsorted(found.at, window.stop, "right")
        gap, tokens = gap[low:high], tokens[low:high]
    return gap if (tokens == 1).all() else np.repeat(gap / np.maximum(tokens, 1), tokens)


def _gaps(at: Ints, owner: Ints, tokens: Ints) -> Gaps:
    within = owner[1:] == owner[:-1]
    gap, ended, carried = np.diff(at)[within], at[1:][within], tokens[1:][within]
    order = np.argsort(ended, kind="stable")
    return Gaps(gap[order] / 1e9, ended[order], carried[order])
