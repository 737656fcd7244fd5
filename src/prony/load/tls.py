"""TLS over a socket that the client reads itself, so that the kernel's receive stamps stay with the bytes."""

import ssl

from prony.base.errors import LaunchError
from prony.load.request import Target

_PLAIN_BYTES = 65536


def client_context(target: Target) -> ssl.SSLContext:
    """Return the context for a target: the system's authorities, a file's, or none. Raises LaunchError."""
    try:
        context = ssl.create_default_context(cafile=target.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise LaunchError(
            f"{target.ca_file}: cannot be read as certificates: {error.strerror or error}",
            fix="give a PEM file with the authority that signed the server's certificate",
        ) from None
    if target.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class TlsSession:
    """One connection's TLS: bytes from the wire in, bytes for the wire out, plain text on the other side."""

    def __init__(self, context: ssl.SSLContext, hostname: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname)

    def handshake(self, data: bytes) -> bool:
        """Take bytes of the handshake; return whether it is done. Raises ssl.SSLError (an OSError)."""
        self._incoming.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def wrap(self, data: bytes) -> bytes:
        """Return what goes to the wire for plain text. Raises ssl.SSLError."""
        self._tls.write(data)
        return self._outgoing.read()

    def unwrap(self, data: bytes) -> bytes:
        """Return the plain text in bytes from the wire, as far as whole records came. Raises ssl.SSLError."""
        self._incoming.write(data)
        plain: list[bytes] = []
        try:
            while piece := self._tls.read(_PLAIN_BYTES):
                plain.append(piece)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        return b"".join(plain)

    def pending(self) -> bytes:
        """Return what TLS itself has to say: handshake, key updates, alerts."""
        return self._outgoing.read()
