"""Where the server is: its URL split and resolved once, and connection faults in words."""

import errno
import os
import socket
from time import monotonic_ns
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from prony.base.errors import LaunchError

CONNECT_TIMEOUT_S = 10.0
_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """A resolved address of the server. dns_s: how long the look-up took."""

    family: int
    sockaddr: tuple[Any, ...]
    text: str
    hostname: str
    tls: bool
    dns_s: float


def split_url(url: str) -> SplitResult:
    """Split a target's URL. Raises LaunchError when it is not http or https with a host."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
        valid = valid and url.isprintable() and url.isascii() and " " not in url and not (parts.query or parts.fragment)
        (parts.hostname or "").encode("idna")
    except ValueError:
        valid = False
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise LaunchError(
            "the address of the server names a user or password, which would be printed and kept",
            allowed="http://HOST:PORT",
            fix="take it out; an API key comes with --api-key-env NAME",
        )
    if not valid:
        raise LaunchError(
            f"{url!r}: not an address that can be loaded",
            allowed="http://HOST:PORT or https://HOST:PORT, each with /PREFIX if the server has one before /v1",
        )
    return parts


def port_of(parts: SplitResult) -> int:
    """Return the port of a target's URL."""
    return parts.port or _PORTS[parts.scheme]


def resolve_address(url: str) -> Address:
    """Look the host of a URL up, once, before the clock. Raises LaunchError."""
    parts = split_url(url)
    host, port = parts.hostname or "", port_of(parts)
    began = monotonic_ns()
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise LaunchError(f"{host}: cannot be resolved: {error}", fix="check the host name in the URL") from None
    family, _, _, _, sockaddr = found[0]
    text = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Address(family, sockaddr, text, host, parts.scheme == "https", (monotonic_ns() - began) / 1e9)


def connect_text(address: Address, error: OSError) -> str:
    """Say in one line why a connection failed."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"cannot connect to {address.text}: no answer within {CONNECT_TIMEOUT_S:g} s"
    known = error.errno is not None and error.errno in errno.errorcode and type(error).__module__ != "ssl"
    reason = os.strerror(error.errno or 0) if known else str(error)
    return f"cannot connect to {address.text}: {reason}"
