"""Short questions to a server before the clock starts: over HTTP or HTTPS, with the API key."""

import http.client
from typing import Any

import orjson

from prony.base.errors import LaunchError
from prony.load.address import port_of, split_url
from prony.load.auth import auth_headers
from prony.load.request import Target

_MOST_BYTES = 64 << 20


def connection_to(target: Target, timeout_s: float) -> http.client.HTTPConnection:
    """Return a connection to a target, not yet open. Raises LaunchError when the URL is none."""
    parts = split_url(target.url)
    host, port = parts.hostname or "", port_of(parts)
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    from prony.load.tls import client_context

    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=client_context(target))


def ask(
    target: Target, method: str, path: str, body: dict[str, Any] | None = None, timeout_s: float = 10.0
) -> tuple[int, Any]:
    """Return status and decoded JSON (None: it is none) of one exchange. Raises LaunchError when nobody answers."""
    connection = connection_to(target, timeout_s)
    headers = {"Content-Type": "application/json", **auth_headers(target)}
    prefix = split_url(target.url).path.rstrip("/")
    try:
        connection.request(method, prefix + path, None if body is None else orjson.dumps(body), headers)
        response = connection.getresponse()
        content = response.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise LaunchError(
            f"{target.url}: cannot be asked: {error.strerror or error if isinstance(error, OSError) else error}",
            fix="check that the server is up and listens at this address",
        ) from None
    finally:
        connection.close()
    try:
        return response.status, orjson.loads(content)
    except orjson.JSONDecodeError:
        return response.status, None
