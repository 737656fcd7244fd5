"""What all lanes to one server share: address, reactor, stamps, deadlines, and what connecting has cost."""

import resource
import socket
from collections import deque
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING

from prony.base.errors import LaunchError
from prony.load.address import Address
from prony.load.clock import SO_TIMESTAMPNS, StampClock
from prony.load.exchange import Exchange
from prony.load.reactor import Reactor

if TYPE_CHECKING:
    import ssl

    from prony.load.lane import Lane

_SPARE_FILES = 64
_LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


class Wire:
    """Shared by the lanes of one process. opened: connections so far; connect_ns, tls_ns: their time in all."""

    def __init__(self, address: Address, timeout_s: float, tls_context: "ssl.SSLContext | None" = None) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.tls_context = tls_context
        self.clock = StampClock()
        self.reactor = Reactor()
        self.opened = 0
        self.connect_ns = 0
        self.tls_ns = 0
        self._deadlines: deque[tuple[int, Lane, Exchange]] = deque()

    def new_socket(self) -> socket.socket:
        """Return a socket that does not block, does not delay, and stamps what it receives. Raises OSError."""
        sock = socket.socket(self.address.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        except BaseException:
            sock.close()
            raise
        return sock

    def now(self) -> int:
        """Return the instant of a read that the kernel did not stamp, and count it."""
        return self.clock.stamp([])

    def set_deadline(self, lane: "Lane", exchange: Exchange) -> None:
        """Time a request out when it has not ended in time. All requests have equal time, so they expire in order."""
        self._deadlines.append((monotonic_ns() + int(self.timeout_s * 1e9), lane, exchange))

    def expire(self) -> None:
        """Time out what is due."""
        deadlines, now = self._deadlines, monotonic_ns()
        while deadlines and (deadlines[0][0] <= now or deadlines[0][1].exchange is not deadlines[0][2]):
            _, lane, exchange = deadlines.popleft()
            if lane.exchange is exchange:
                lane.time_out()


def require_sockets(count: int, address: Address) -> None:
    """Raise the soft limit of open files to hold `count` connections. Raises LaunchError when a limit is lower."""
    files = count + _SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        if hard != resource.RLIM_INFINITY and hard < files:
            raise LaunchError(
                f"this load needs {files} open files, the limit is {hard}",
                fix=f"raise it (ulimit -Hn {files}, or LimitNOFILE= of the service) or lower the concurrency",
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    ports = _local_ports()
    if ports is not None and count > ports:
        raise LaunchError(
            f"this load needs {count} connections to {address.text}, this machine has {ports} ports for them",
            fix="widen the range (sysctl net.ipv4.ip_local_port_range='1024 65535') or lower the concurrency",
        )


def _local_ports() -> int | None:
    try:
        low, high = map(int, _LOCAL_PORTS.read_text().split())
    except (OSError, ValueError):
        return None
    return high - low + 1
