"""One GET to a server, for probes and counters that may not be there."""

import http.client
from urllib.parse import urlsplit


def fetch(url: str, path: str, timeout_s: float, most_bytes: int) -> bytes | None:
    """Return up to most_bytes of the body of a 200 answer to GET url/path, or None for anything else."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout_s)
    try:
        connection.request("GET", parts.path.rstrip("/") + path, headers={"Connection": "close"})
        response = connection.getresponse()
        body = response.read(most_bytes)
    except (OSError, http.client.HTTPException):
        return None
    else:
        return body if response.status == 200 else None
    finally:
        connection.close()
