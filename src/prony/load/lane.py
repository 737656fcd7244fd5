"""One concurrent stream: a raw non-blocking connection and the request in flight on it."""

import asyncio
import socket
from collections.abc import Callable
from time import monotonic_ns

from prony.load.address import CONNECT_TIMEOUT_S, Address, connect_text
from prony.load.clock import ANCILLARY_BYTES, SO_TIMESTAMPNS, StampClock
from prony.load.exchange import Exchange
from prony.load.http import ProtocolError
from prony.measure.eventlog import NEVER, Fault

READ_BYTES = 65536


class Connections:
    """What all lanes share about connecting: the address, the stamp clock, the count and time of connects."""

    def __init__(self, address: Address, clock: StampClock) -> None:
        self.address = address
        self.clock = clock
        self.opened = 0
        self.connect_ns = 0

    async def open(self) -> tuple[int, socket.socket]:
        """Return a connected socket with its ordinal. Raises OSError or TimeoutError."""
        sock = socket.socket(self.address.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            began = monotonic_ns()
            loop = asyncio.get_running_loop()
            await asyncio.wait_for(loop.sock_connect(sock, self.address.sockaddr), CONNECT_TIMEOUT_S)
        except BaseException:
            sock.close()
            raise
        self.connect_ns += monotonic_ns() - began
        self.opened += 1
        return self.opened - 1, sock


class Lane:
    """Sends one request at a time over one connection, reconnecting when the server has closed it.

    `ended(lane, exchange)` is called once for each exchange, also when it failed.
    """

    def __init__(self, connections: Connections, timeout_s: float, ended: Callable[["Lane", Exchange], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._connections = connections
        self._stamp = connections.clock.stamp
        self._timeout_s = timeout_s
        self._ended = ended
        self._sock: socket.socket | None = None
        self._connection = NEVER
        self._used = False
        self._exchange: Exchange | None = None
        self._unsent: memoryview | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        self.free_at = NEVER

    async def open(self) -> None:
        """Connect before the clock starts. Raises OSError or TimeoutError."""
        self._connection, self._sock = await self._connections.open()
        self._used = False
        self._loop.add_reader(self._sock.fileno(), self._readable)

    def start(self, exchange: Exchange) -> None:
        """Send a request now, over a new connection if there is none."""
        exchange.scheduled = self.free_at
        self._exchange = exchange
        self._timer = self._loop.call_later(self._timeout_s, self._timed_out)
        if self._sock is None:
            self._reopen()
        else:
            self._send(exchange)

    def cancel(self, message: str) -> None:
        """End the request in flight as cancelled and close the connection."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._exchange is not None:
            self._fail(Fault.CANCELLED, message)
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._sock is not None:
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
            self._sock = self._unsent = None

    def _reopen(self) -> None:
        self._opening = self._loop.create_task(self._reopen_and_send())

    async def _reopen_and_send(self) -> None:
        try:
            await self.open()
        except (OSError, TimeoutError) as error:
            self._opening = None
            if self._exchange is not None:
                self._fail(Fault.CONNECT, connect_text(self._connections.address, error))
            return
        self._opening = None
        if self._exchange is not None:
            self._send(self._exchange)

    def _send(self, exchange: Exchange) -> None:
        sock = self._sock
        assert sock is not None
        exchange.connection = self._connection
        exchange.sent = monotonic_ns()
        try:
            count = sock.send(exchange.payload)
        except BlockingIOError:
            count = 0
        except OSError as error:
            self._lost(error)
            return
        if count < len(exchange.payload):
            self._unsent = memoryview(exchange.payload)[count:]
            self._loop.add_writer(sock.fileno(), self._writable)

    def _writable(self) -> None:
        if self._sock is None or self._unsent is None:
            return
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error)
            return
        if not self._unsent:
            self._unsent = None
            self._loop.remove_writer(self._sock.fileno())

    def _readable(self) -> None:
        assert self._sock is not None
        try:
            data, ancillary, _, _ = self._sock.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error)
            return
        exchange = self._exchange
        if exchange is None or not data:
            self._lost(None)
            return
        stamp = self._stamp(ancillary)
        try:
            complete = exchange.response.feed(stamp, data)
        except ProtocolError as error:
            self.close()
            self._fail(Fault.GARBAGE, str(error))
            return
        if complete:
            self._complete(exchange, stamp)

    def _complete(self, exchange: Exchange, stamp: int) -> None:
        self._used = True
        if not exchange.response.keep_alive or self._unsent is not None:
            self.close()
        self._end(exchange, stamp)

    def _lost(self, error: OSError | None) -> None:
        """The connection is gone: at rest, while stale, at the proper end of an answer, or too early."""
        self.close()
        exchange = self._exchange
        if exchange is None:
            return
        response = exchange.response
        if error is None and response.ends_by_close:
            exchange.closed = True
            self._end(exchange, monotonic_ns())
        elif not response.reads and self._used and not exchange.resent:
            exchange.resent = True  # an idle connection that the server had given up: not the request's fault
            self._reopen()
        elif response.reads or error is None:
            exchange.closed = True
            how = "reset" if error is not None else "closed"
            what = f"after {response.size} bytes of the answer" if response.reads else "before any answer"
            self._fail(Fault.CLOSED_EARLY, f"connection {how} by the server {what}")
        else:
            self._fail(Fault.CONNECT, connect_text(self._connections.address, error))

    def _timed_out(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        self.close()
        self._fail(Fault.TIMEOUT, f"no complete answer within {self._timeout_s:g} s")

    def _fail(self, fault: Fault, message: str) -> None:
        exchange = self._exchange
        assert exchange is not None
        exchange.fault, exchange.message = fault, message
        self._end(exchange, monotonic_ns())

    def _end(self, exchange: Exchange, stamp: int) -> None:
        exchange.end = self.free_at = stamp
        exchange.payload = b""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._exchange = None
        self._ended(self, exchange)
