"""`prony serve`: the store in a browser."""

import argparse
import errno
import socket

from prony.base.errors import LaunchError
from prony.cli.arguments import add_store_argument, command, whole
from prony.cli.console import say

_PORTS_TRIED = 100


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `serve`."""
    parser = nouns.add_parser(
        "serve",
        help="show the results in a browser",
        description="Serve the results as a page and a JSON API. There is no login: keep it on this machine, or behind "
        "a proxy that has one.",
        epilog="example: prony serve --store prony-out/store.db --port 8080",
    )
    add_store_argument(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on; default: 127.0.0.1"
    )
    parser.add_argument(
        "--port", type=whole(0, 65535), default=8080, metavar="N", help="port; 0 takes a free one; default: 8080"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    import uvicorn

    from prony.store.store import open_store
    from prony.web.app import LOOPBACK, create_app

    with open_store(arguments.store, create=False) as store, listen(arguments) as listener:
        local = arguments.host in LOOPBACK
        hosts = LOOPBACK if local else ("*",)
        app = create_app(store.select, versions=store.versions, store=str(arguments.store), allowed_hosts=hosts)
        host, port = (f"[{arguments.host}]" if ":" in arguments.host else arguments.host), listener.getsockname()[1]

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                """Tell the address once it answers."""
                await super().startup(sockets)
                say(f"Prony serves {arguments.store} at http://{host}:{port}/  (stop with Ctrl-C)")

        Server(uvicorn.Config(app, log_level="warning", ws="none", lifespan="off")).run(sockets=[listener])
    return 0


def listen(arguments: argparse.Namespace) -> socket.socket:
    """Return a listening socket. Raises LaunchError with the next free port when this one is taken."""
    host, port = arguments.host, arguments.port
    try:
        return _bound(host, port)
    except UnicodeError:
        raise LaunchError(
            f"'{host}' is not an address", fix="give --host a name or an address of this machine"
        ) from None
    except OSError as error:
        fix = "check that --host is an address of this machine; ports below 1024 need rights"
        if error.errno == errno.EADDRINUSE:
            free = _free_port(host, port)
            words = ("serve", *(() if host == "127.0.0.1" else ("--host", host)), "--port", free)
            fix = f"use a free port: {command(*words, store=arguments.store)}"
        raise LaunchError(f"cannot listen on {host}:{port}: {error.strerror}", fix=fix) from None


def _bound(host: str, port: int) -> socket.socket:
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def _free_port(host: str, port: int) -> int:
    """Return the next port that is free, 0 (the system chooses) when none is near."""
    for other in range(port + 1, min(port + _PORTS_TRIED, 65536)):
        try:
            _bound(host, other).close()
        except OSError:
            continue
        return other
    return 0
