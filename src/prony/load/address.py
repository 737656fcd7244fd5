"""Where the server is: its URL split and resolved once, and connection faults in words."""

import errno
import os
import socket
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from prony.base.errors import LaunchError

CONNECT_TIMEOUT_S = 10.0


class Address(NamedTuple):
    """A resolved address of the server."""

    family: int
    sockaddr: tuple[Any, ...]
    text: str


def split_url(url: str) -> SplitResult:
    """Split a target's URL. Raises LaunchError when it is not plain http with a host."""
    parts = urlsplit(url)
    try:
        valid = parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise LaunchError(
            f"{url}: not an address that can be loaded", allowed="http://HOST:PORT or http://HOST:PORT/PREFIX"
        )
    return parts


def resolve_address(url: str) -> Address:
    """Look the host of a URL up, once, before the clock. Raises LaunchError."""
    parts = split_url(url)
    host, port = parts.hostname or "", parts.port or 80
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise LaunchError(f"{host}: cannot be resolved: {error}", fix="check the host name in the URL") from None
    family, _, _, _, sockaddr = found[0]
    return Address(family, sockaddr, f"{host}:{port}")


def connect_text(address: Address, error: OSError | TimeoutError) -> str:
    """Say in one line why a connection failed."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"cannot connect to {address.text}: no answer within {CONNECT_TIMEOUT_S:g} s"
    known = error.errno is not None and error.errno in errno.errorcode
    reason = os.strerror(error.errno or 0) if known else str(error)
    return f"cannot connect to {address.text}: {reason}"
