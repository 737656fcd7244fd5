"""The event log: what the wire client saw, columnar, the primary artefact of every load.

Every metric, also "as another tool would report it", is a pure function of this log.
All instants are int64 nanoseconds on one monotonic axis whose zero is the start of the measured load; -1 is "never".
"""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prony.measure.observed import ClientFacts as ClientFacts
from prony.measure.observed import Disturbance, EngineFacts

Ints = NDArray[np.int64]
NEVER = -1


class Kind(IntEnum):
    """What an event of a stream carries. Only CONTENT, REASONING and TOOL carry generated tokens."""

    ROLE = 0
    CONTENT = 1
    REASONING = 2
    TOOL = 3
    USAGE = 4
    DONE = 5
    ERROR = 6


class Fault(IntEnum):
    """Why a request did not complete; OK when it did."""

    OK = 0
    CONNECT = 1
    HTTP_STATUS = 2
    STREAM_ERROR = 3
    GARBAGE = 4
    CLOSED_EARLY = 5
    TIMEOUT = 6
    CANCELLED = 7
    NO_TOKENS = 8


@dataclass(frozen=True)
class Requests:
    """One array entry per measured request (warm-ups are not in the log).

    scheduled, sent, headers, first_byte, end: ns; status: HTTP status or 0; fault: Fault; planned and counted tokens
    (-1: the server did not say).
    """

    scheduled: Ints
    sent: Ints
    headers: Ints
    end: Ints
    status: Ints
    fault: Ints
    input_planned: Ints
    output_planned: Ints
    input_counted: Ints
    output_counted: Ints
    cached_counted: Ints
    connection: Ints

    def __len__(self) -> int:
        return len(self.sent)


@dataclass(frozen=True)
class Events:
    """One array entry per SSE event, grouped by request and in order of arrival within it.

    request: index into Requests; at: ns; kind: Kind; tokens: generated tokens it carries when the server says
    (continuous usage), else -1.
    """

    request: Ints
    at: Ints
    kind: Ints
    tokens: Ints

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True)
class EventLog:
    """All of one load: asked concurrency, the client's facts, requests and events, messages of failed requests.

    arrival: `closed` (a request follows an end; scheduled is when its slot was free) or `open` (scheduled is when it
    was due, whatever the server did). streamed: False when whole answers were asked, which have no first token.
    disturbance, engine: what else the machine did, and what the engine's counters say, in the measured phase.
    """

    concurrency: int
    client: ClientFacts
    requests: Requests
    events: Events
    messages: tuple[tuple[int, str], ...] = ()
    disturbance: Disturbance | None = None
    engine: EngineFacts | None = None
    arrival: Literal["closed", "open"] = "closed"
    streamed: bool = True


def column_names(kind: type[Requests] | type[Events]) -> tuple[str, ...]:
    """Return the column names of a table in their order."""
    return tuple(field.name for field in fields(kind))
