"""One request and all that came back for it, undecoded."""

from prony.load.http import Response
from prony.measure.eventlog import NEVER, Fault


class Exchange:
    """Mutable record of the hot loop. Instants are CLOCK_MONOTONIC ns, -1 never.

    fault: what the transport met (OK when the response was complete); the stream's own faults are found at decoding.
    closed: the server closed the connection before the response was complete.
    """

    __slots__ = (
        "closed",
        "connection",
        "end",
        "fault",
        "index",
        "input_planned",
        "message",
        "output_planned",
        "payload",
        "resent",
        "response",
        "scheduled",
        "sent",
    )  # fmt: skip

    def __init__(self, index: int, payload: bytes, input_planned: int, output_planned: int) -> None:
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
        self.response = Response()

    @property
    def answered(self) -> bool:
        """The server's answer was complete and had status 200, as far as the transport can tell."""
        return self.fault is Fault.OK and self.response.status == 200
