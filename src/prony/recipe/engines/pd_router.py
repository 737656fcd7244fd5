"""A router before prefill and decode workers: `python -m prony.recipe.engines.pd_router`.

A request goes to a prefill worker for one token, which leaves its KV where the connector puts it; then to a decode
worker, whose answer is passed through byte for byte. Workers take turns.
"""

import argparse
import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from prony.recipe.engines.flags import add_to_parser
from prony.recipe.engines.pd_http import (
    MOST_HEAD_BYTES,
    BadRequest,
    Message,
    Upstream,
    answer_bytes,
    read_body,
    read_head,
    request_bytes,
)
from prony.recipe.engines.pdrouter import PD_ROUTER_FLAGS

GENERATING = ("/v1/completions", "/v1/chat/completions")
Body = dict[str, Any]
# What vLLM's NIXL connector takes as "keep the blocks, somebody will fetch them".
_REMOTE_DECODE = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    **dict.fromkeys(("remote_engine_id", "remote_block_ids", "remote_host", "remote_port")),
}


class WorkerFault(Exception):  # noqa: N818 - it is answered with the worker's status, or 502
    """A worker did not do its part; `body` is what it answered, where it did."""

    def __init__(self, message: str, status: str = "502 Bad Gateway", body: bytes = b"") -> None:
        super().__init__(message)
        self.status, self.body = status, body


@dataclass
class Router:
    """The workers, whose turn it is, and what was counted."""

    prefill: tuple[str, ...]
    decode: tuple[str, ...]
    timeout_s: float
    requests: int = 0
    failures: int = 0
    prefill_s: float = 0.0
    _turns: "itertools.count[int]" = field(default_factory=itertools.count)

    def workers(self) -> tuple[str, str]:
        """Return the prefill and the decode worker whose turn it is."""
        turn = next(self._turns)
        return self.prefill[turn % len(self.prefill)], self.decode[turn % len(self.decode)]

    def metrics(self) -> bytes:
        """Return the counters as Prometheus text."""
        counted = (
            ("requests_total", self.requests),
            ("failures_total", self.failures),
            ("prefill_seconds_total", round(self.prefill_s, 6)),
        )
        return "".join(f"# TYPE prony_pd:{name} counter\nprony_pd:{name} {value}\n" for name, value in counted).encode()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(
        prog="python -m prony.recipe.engines.pd_router",
        description="Route requests to prefill, then decode workers "
        "(example: --port 8000 --prefill http://127.0.0.1:8100 --decode http://127.0.0.1:8200).",
    )
    add_to_parser(parser, PD_ROUTER_FLAGS)
    args = parser.parse_args(argv)
    if not args.prefill or not args.decode:
        parser.error("--prefill and --decode are needed, each at least once")
    router = Router(tuple(args.prefill), tuple(args.decode), args.timeout_s)
    with contextlib.suppress(KeyboardInterrupt):
        return _run(router, args.host, args.port)
    return 130


def _run(router: Router, host: str, port: int) -> int:
    import uvloop  # heavy

    try:
        uvloop.run(_serve(router, host, port))
    except OSError as error:
        sys.stderr.write(f"pd_router: port {port} on {host}: {error.strerror or error}\n")
        return 3
    return 0


class _Reader(asyncio.StreamReader):
    """A reader that says when the client has closed, whatever was sent ahead."""

    def __init__(self) -> None:
        super().__init__(limit=MOST_HEAD_BYTES, loop=asyncio.get_running_loop())
        self.closed = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.closed.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.closed.set()


async def _serve(router: Router, host: str, port: int) -> None:
    async def client(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reader = cast(_Reader, stream)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await _connection(router, reader, writer)
        writer.close()

    def protocol() -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(_Reader(), client)

    server = await asyncio.get_running_loop().create_server(protocol, host, port, backlog=4096)
    async with server:
        await server.serve_forever()


async def _connection(router: Router, reader: _Reader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection, one after the other."""
    keep = True
    while keep:
        try:
            head = await read_head(reader)
            if head is None:
                return
            keep = await _answer(router, head, await read_body(reader, head.headers), reader, writer)
        except BadRequest as error:
            writer.write(answer_bytes("400 Bad Request", _error(str(error))))
            keep = False
        await writer.drain()


async def _answer(router: Router, head: Message, body: bytes, reader: _Reader, writer: asyncio.StreamWriter) -> bool:
    """Answer one request; return whether the connection can be used again."""
    method, path = head.first[0], head.first[1].partition("?")[0]
    if (method, path) == ("GET", "/health"):
        writer.write(answer_bytes("200 OK", b"{}"))
    elif (method, path) == ("GET", "/metrics"):
        writer.write(answer_bytes("200 OK", router.metrics(), "text/plain"))
    elif method == "POST" and path in GENERATING:
        return await _watched(_generate(router, path, head, body, writer), reader, writer)
    else:
        return await _passed(
            router.decode[0], request_bytes(method, head.first[1], "worker", head.headers, body), writer
        )
    return True


async def _watched(work: Any, reader: _Reader, writer: asyncio.StreamWriter) -> bool:
    """Do the work, and drop it when the client goes away: leaving it closes the requests to the workers."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(reader.closed.wait())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            writer.close()
            return False
        return bool(task.result())
    finally:
        gone.cancel()


async def _generate(router: Router, path: str, head: Message, raw: bytes, writer: asyncio.StreamWriter) -> bool:
    router.requests += 1
    try:
        body = orjson.loads(raw)
        if not isinstance(body, dict):
            raise BadRequest("the body is no JSON object")
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    prefill, decode = router.workers()
    try:
        began = time.monotonic()
        transfer = await asyncio.wait_for(_prefill(prefill, path, head, body), router.timeout_s)
        router.prefill_s += time.monotonic() - began
        if transfer is not None:
            body["kv_transfer_params"] = transfer
        return await _passed(decode, request_bytes("POST", path, "worker", head.headers, orjson.dumps(body)), writer)
    except (WorkerFault, TimeoutError) as error:
        router.failures += 1
        fault = (
            error if isinstance(error, WorkerFault) else WorkerFault(f"{prefill}: no answer in {router.timeout_s} s")
        )
        writer.write(answer_bytes(fault.status, fault.body or _error(str(fault))))
        return True


async def _prefill(worker: str, path: str, head: Message, body: Body) -> Any:
    """Have a worker compute a prompt's KV; return what decode must know to fetch it, or None. Raises WorkerFault."""
    asked = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
    asked |= {"max_tokens": 1, "stream": False, "kv_transfer_params": _REMOTE_DECODE}
    asked |= {name: 1 for name in ("min_tokens", "max_completion_tokens") if name in body}
    request = request_bytes("POST", path, "worker", head.headers, orjson.dumps(asked))
    try:
        async with Upstream(worker, request) as answer:
            told = await answer.whole()
            if answer.status != 200:
                first = " ".join(answer.head.first[1:]) if answer.head else "502 Bad Gateway"
                raise WorkerFault(f"prefill worker {worker} answered {answer.status}", first, told)
            found = orjson.loads(told)
            return found.get("kv_transfer_params") if isinstance(found, dict) else None
    except (OSError, asyncio.IncompleteReadError, BadRequest, orjson.JSONDecodeError) as error:
        raise WorkerFault(f"prefill worker {worker}: {error or type(error).__name__}") from None


async def _passed(worker: str, request: bytes, writer: asyncio.StreamWriter) -> bool:
    """Pass a worker's answer through; return whether the client's connection can be used again."""
    begun = False
    try:
        async with Upstream(worker, request) as answer:
            writer.write(answer.head_bytes())
            begun = True
            async for piece in answer.pieces():
                writer.write(piece)
                await writer.drain()
            return answer.framed
    except (OSError, BadRequest) as error:
        if begun:  # the client sees an answer that ends early: nothing else is true
            return False
        writer.write(
            answer_bytes("502 Bad Gateway", _error(f"decode worker {worker}: {error or type(error).__name__}"))
        )
        return True


def _error(message: str) -> bytes:
    return orjson.dumps({"error": {"message": message, "type": "router_error"}})


if __name__ == "__main__":
    sys.exit(main())
