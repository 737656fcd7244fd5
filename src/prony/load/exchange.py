"""One request, and its answer as far as it has come."""

from prony.load.answer import Answer
from prony.measure.eventlog import NEVER, Fault


class Exchange:
    """Mutable record of the hot loop. Instants are CLOCK_MONOTONIC ns, -1 never.

    fault: what the transport met (OK when the answer was complete), after `settle` also what the stream itself says.
    closed: the server closed the connection before the answer was complete. resent: the connection had died idle.
    """

    __slots__ = (
        "answer", "closed", "connection", "end", "fault", "index", "input_planned", "message", "output_planned",
        "payload", "resent", "scheduled", "sent",
    )  # fmt: skip

    def __init__(
        self, index: int, payload: bytes, input_planned: int, output_planned: int, *, keep_text: bool = False
    ) -> None:
        self.index = index
        self.payload = payload
        self.input_planned = input_planned
        self.output_planned = output_planned
        self.scheduled = NEVER
        self.sent = NEVER
        self.end = NEVER
        self.connection = NEVER
        self.fault = Fault.OK
        self.message = ""
        self.closed = False
        self.resent = False
        self.answer = Answer(keep_text=keep_text)
