"""One concurrent stream: a raw non-blocking connection and the request in flight on it."""

import errno
import os
import socket
from collections.abc import Callable
from time import monotonic_ns

from prony.load.address import CONNECT_TIMEOUT_S, connect_text
from prony.load.answer import BITE
from prony.load.clock import ANCILLARY_BYTES
from prony.load.exchange import Exchange
from prony.load.http import ProtocolError, in_chunks
from prony.load.reactor import Timer
from prony.load.tls import TlsSession
from prony.load.wire import Wire
from prony.measure.eventlog import NEVER, Fault

READ_BYTES = 65536
_EMPTY_LINE = b"\r\n\r\n"
_SHORT = len(_EMPTY_LINE)


class Lane:
    """Sends one request at a time over one connection, reconnecting when the server has closed it.

    `ended(lane, exchange)` is called once for each exchange, also when it failed; `first()`, where given, when the
    first token of an answer has come. free_at: since when nothing is in flight, ns.
    """

    def __init__(
        self,
        wire: Wire,
        ended: Callable[["Lane", Exchange], None],
        first: Callable[[], None] | None = None,
    ) -> None:
        self._wire = wire
        self._ended = ended
        self._first = first
        self._awaits_first = False
        self._sock: socket.socket | None = None
        self._tls: TlsSession | None = None
        self._opened: Callable[[OSError | None], None] | None = None
        self._connect_timer: Timer | None = None
        self._began = 0
        self._connection = NEVER
        self._used = False
        self._eager, self._fresh = False, True
        self._unsent = b""
        self.exchange: Exchange | None = None
        self.free_at = NEVER

    @property
    def is_open(self) -> bool:
        """There is a connection, as far as is known."""
        return self._sock is not None and self._opened is None

    def open(self, opened: Callable[[OSError | None], None]) -> None:
        """Connect, and call `opened` with the fault or None."""
        wire = self._wire
        self._opened, self._used, self._unsent, self._began = opened, False, b"", monotonic_ns()
        try:
            self._sock = wire.new_socket()
            code = self._sock.connect_ex(wire.address.sockaddr)
        except OSError as error:
            self._not_opened(error)
            return
        if code not in (0, errno.EINPROGRESS):
            self._not_opened(OSError(code, os.strerror(code)))
            return
        timeout = self._began + int(CONNECT_TIMEOUT_S * 1e9)
        self._connect_timer = wire.reactor.call_at(timeout, lambda: self._not_opened(TimeoutError()))
        wire.reactor.watch(self._sock.fileno(), self._connecting, write=True)

    def start(self, exchange: Exchange) -> None:
        """Send a request now, over a new connection if there is none."""
        if exchange.scheduled == NEVER:
            exchange.scheduled = self.free_at
        self.exchange = exchange
        self._awaits_first = self._first is not None
        self._wire.set_deadline(self, exchange)
        if self._sock is None:
            self._reopen()
        else:
            self._send(exchange)

    def cancel(self, message: str) -> None:
        """End the request in flight as cancelled and close the connection."""
        self.close()
        if self.exchange is not None:
            self._fail(Fault.CANCELLED, message)

    def time_out(self) -> None:
        """End the request in flight as timed out, with what came of its answer, and close the connection."""
        self.close()
        if self._advance() is not None:  # else it was garbage, and that has been told
            self._fail(Fault.TIMEOUT, f"no complete answer within {self._wire.timeout_s:g} s")

    def flush(self) -> None:
        """Decode what was read; where that was the end of the answer, end the request."""
        exchange = self.exchange
        if exchange is not None and exchange.answer.raw and self._advance():
            self._complete(exchange)

    def close(self) -> None:
        """Close the connection."""
        if self._connect_timer is not None:
            self._connect_timer.cancel()
        if self._sock is not None:
            self._wire.reactor.forget(self._sock.fileno())
            self._sock.close()
        self._sock = self._tls = self._opened = self._connect_timer = None
        self._unsent = b""

    # --- connecting

    def _connecting(self) -> None:
        sock = self._sock
        assert sock is not None
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._not_opened(OSError(code, os.strerror(code)))
            return
        try:
            sock.getpeername()
        except OSError:  # an event that was meant for an earlier socket of this number
            return
        wire = self._wire
        wire.connect_ns += monotonic_ns() - self._began
        self._connection = wire.opened
        wire.opened += 1
        if wire.tls_context is None:
            self._established()
            return
        self._tls = TlsSession(wire.tls_context, wire.address.hostname)
        self._began = monotonic_ns()
        wire.reactor.watch(sock.fileno(), self._handshaking)
        self._handshake(b"")

    def _handshaking(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._not_opened(error)
            return
        if data:
            self._handshake(data)
        else:
            self._not_opened(ConnectionResetError(errno.ECONNRESET, "closed during the TLS handshake"))

    def _handshake(self, data: bytes) -> None:
        assert self._tls is not None
        try:
            done = self._tls.handshake(data)
            self._push(self._tls.pending())
        except OSError as error:
            self._not_opened(error)
            return
        if done:
            self._wire.tls_ns += monotonic_ns() - self._began
            self._established()

    def _established(self) -> None:
        assert self._sock is not None and self._opened is not None
        if self._connect_timer is not None:
            self._connect_timer.cancel()
        opened, self._opened, self._connect_timer = self._opened, None, None
        self._listen()
        opened(None)

    def _not_opened(self, error: OSError) -> None:
        opened = self._opened
        self.close()
        if opened is not None:
            opened(error)

    def _reopen(self) -> None:
        self.open(self._reopened)

    def _reopened(self, error: OSError | None) -> None:
        if self.exchange is None:
            return
        if error is None:
            self._send(self.exchange)
        else:
            self._fail(Fault.CONNECT, connect_text(self._wire.address, error))

    # --- sending

    def _send(self, exchange: Exchange) -> None:
        exchange.connection = self._connection
        self._eager, self._fresh = False, True
        payload = exchange.payload
        try:
            if self._tls is not None:
                payload = self._tls.wrap(payload)
            exchange.sent = monotonic_ns()
            self._push(payload)
        except OSError as error:
            self._lost(error)

    def _push(self, data: bytes) -> None:
        """Send, and keep what the socket does not take yet. Raises OSError."""
        assert self._sock is not None
        if not self._unsent:
            try:
                count = self._sock.send(data)
            except BlockingIOError:
                count = 0
            if count == len(data):
                return
            data = data[count:]
        self._unsent += data
        self._listen()

    def _listen(self) -> None:
        assert self._sock is not None
        shaking = self._opened is not None
        readable = self._handshaking if shaking else self._readable if self._tls is None else self._readable_tls

        def both() -> None:
            self._writable()
            if self._sock is not None:
                readable()

        handler = both if self._unsent else readable
        self._wire.reactor.watch(self._sock.fileno(), handler, write=bool(self._unsent))

    def _writable(self) -> None:
        assert self._sock is not None
        try:
            count = self._sock.send(memoryview(self._unsent))
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error)
            return
        self._unsent = self._unsent[count:]
        if not self._unsent:
            self._listen()

    # --- receiving

    def _readable(self) -> None:
        try:
            data, ancillary, _, _ = self._sock.recvmsg(READ_BYTES, ANCILLARY_BYTES)  # type: ignore[union-attr]
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error)
            return
        exchange = self.exchange
        if exchange is None or not data:
            self._lost(None)
            return
        raw = exchange.answer.raw
        raw.append((ancillary or self._wire.now(), data))
        if self._fresh:
            self._fresh = False
            self._eager = self._awaits_first or not in_chunks(data)
        if self._eager or data[-_SHORT:] == _EMPTY_LINE or len(data) < _SHORT:
            self._wire.reactor.soon(self.flush)
        elif len(raw) == BITE:
            self._wire.reactor.later(self.flush)

    def _readable_tls(self) -> None:
        assert self._sock is not None and self._tls is not None
        try:
            data, ancillary, _, _ = self._sock.recvmsg(READ_BYTES, ANCILLARY_BYTES)
            plain = self._tls.unwrap(data) if data else b""
            self._push(self._tls.pending())
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error)
            return
        exchange = self.exchange
        if not data or (plain and exchange is None):
            self._lost(None)
        elif plain and exchange is not None:
            exchange.answer.raw.append((ancillary or self._wire.now(), plain))
            self._wire.reactor.soon(self.flush)

    def _advance(self) -> bool | None:
        """Decode what was read; return whether the answer is complete, None when it was garbage and has ended so."""
        exchange = self.exchange
        assert exchange is not None
        answer = exchange.answer
        try:
            complete = answer.advance(self._wire.clock)
        except ProtocolError as error:
            self.close()
            self._fail(Fault.GARBAGE, str(error))
            return None
        if self._awaits_first and answer.has_token:
            self._tell_first()
        # Only an answer in chunks shows its end in its last bytes; any other is looked at read by read.
        self._eager = self._awaits_first or not answer.response.chunked
        return complete

    def _tell_first(self) -> None:
        if self._awaits_first and self._first is not None:
            self._awaits_first = False
            self._first()

    def _complete(self, exchange: Exchange) -> None:
        self._used = True
        if not exchange.answer.response.keep_alive or self._unsent:
            self.close()
        self._end(exchange, exchange.answer.last_at)

    def _lost(self, error: OSError | None) -> None:
        """The connection is gone: at rest, while stale, at the proper end of an answer, or too early."""
        self.close()
        exchange = self.exchange
        if exchange is None:
            return
        complete = self._advance()
        response = exchange.answer.response
        if complete is None:
            return
        if complete:
            self._end(exchange, exchange.answer.last_at)
        elif error is None and response.ends_by_close:
            exchange.closed = True
            self._end(exchange, monotonic_ns())
        elif not exchange.answer.reads and self._used and not exchange.resent:
            exchange.resent = True  # an idle connection that the server had given up: not the request's fault
            self._reopen()
        elif exchange.answer.reads or error is None or exchange.sent != NEVER:
            exchange.closed = True
            how = "reset" if error is not None else "closed"
            what = f"after {response.size} bytes of the answer" if exchange.answer.reads else "before any answer"
            self._fail(Fault.CLOSED_EARLY, f"connection {how} by the server {what}")
        else:
            self._fail(Fault.CONNECT, connect_text(self._wire.address, error))

    def _fail(self, fault: Fault, message: str) -> None:
        exchange = self.exchange
        assert exchange is not None
        exchange.fault, exchange.message = fault, message
        self._end(exchange, monotonic_ns())

    def _end(self, exchange: Exchange, stamp: int) -> None:
        exchange.end = self.free_at = stamp
        exchange.payload = b""
        self.exchange = None
        self._tell_first()
        self._ended(self, exchange)
