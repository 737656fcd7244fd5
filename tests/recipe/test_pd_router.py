"""The router before prefill and decode workers: one token there, the answer from here, and faults told as they are."""

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.load.conftest import free_port, get, wait_until_healthy

STREAM = [b'data: {"n": 1}\n\n', b'data: {"n": 2}\n\n', b"data: [DONE]\n\n"]


class Worker:
    """An HTTP server that keeps what it was asked and answers as told."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.ids: list[str | None] = []
        self.status, self.answer, self.pause_s, self.cut = 200, b"{}", 0.0, False
        self.closed = threading.Event()
        worker = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                worker.asked.append(body)
                worker.ids.append(self.headers.get("x-request-id"))
                if body.get("stream"):
                    self._stream()
                    return
                time.sleep(worker.pause_s)
                self.send_response(worker.status)
                self.send_header("content-length", str(len(worker.answer)))
                with contextlib.suppress(OSError):
                    self.end_headers()
                    self.wfile.write(worker.answer)

            def _stream(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                try:
                    for piece in STREAM[: 1 if worker.cut else None]:
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                        self.wfile.flush()
                        time.sleep(worker.pause_s)
                    if not worker.cut:
                        self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    worker.closed.set()
                self.close_connection = True

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def workers() -> Iterator[Callable[[], Worker]]:
    made: list[Worker] = []

    def make() -> Worker:
        made.append(Worker())
        return made[-1]

    yield make
    for worker in made:
        worker.stop()


@contextlib.contextmanager
def routed(prefill: list[str], decode: list[str], *words: str) -> Iterator[int]:
    port = free_port()
    argv = [sys.executable, "-m", "prony.recipe.engines.pd_router", "--port", str(port), *words]
    argv += [word for url in prefill for word in ("--prefill", url)]
    argv += [word for url in decode for word in ("--decode", url)]
    with subprocess.Popen(argv) as process:
        try:
            wait_until_healthy(port, process)
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=10)


def post(
    connection: http.client.HTTPConnection, body: dict[str, Any], path: str = "/v1/completions"
) -> tuple[int, bytes]:
    connection.request("POST", path, json.dumps(body), {"X-Request-Id": "r-7"})
    response = connection.getresponse()
    return response.status, response.read()


def dial(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=10)


def test_prefill_makes_one_token_and_decode_streams_the_answer(workers: Callable[[], Worker]) -> None:
    prefill, decode = workers(), workers()
    prefill.answer = b'{"kv_transfer_params": {"remote_engine_id": "e1"}}'
    with routed([prefill.url], [decode.url]) as port, contextlib.closing(dial(port)) as connection:
        asked = {"prompt": [1, 2], "max_tokens": 9, "min_tokens": 9, "stream": True, "stream_options": {"x": 1}}
        for _ in range(3):  # the client's connection is kept
            assert post(connection, asked) == (200, b"".join(STREAM))
        assert b"prony_pd:requests_total 3" in get(port, "/metrics")[1]
    first = prefill.asked[0]
    assert (first["max_tokens"], first["min_tokens"], first["stream"]) == (1, 1, False)
    assert "stream_options" not in first and first["kv_transfer_params"]["do_remote_decode"] is True
    assert decode.asked[0] == {**asked, "kv_transfer_params": {"remote_engine_id": "e1"}}
    assert prefill.ids == decode.ids == ["r-7"] * 3


def test_workers_take_turns(workers: Callable[[], Worker]) -> None:
    prefill, one, other = workers(), workers(), workers()
    with routed([prefill.url], [one.url, other.url]) as port, contextlib.closing(dial(port)) as connection:
        for _ in range(4):
            assert post(connection, {"prompt": "a"}, "/v1/chat/completions")[0] == 200
    assert len(one.asked) == len(other.asked) == 2 and len(prefill.asked) == 4


def test_what_a_prefill_worker_refuses_reaches_the_client(workers: Callable[[], Worker]) -> None:
    prefill, decode = workers(), workers()
    prefill.status, prefill.answer = 400, b'{"error": "too long"}'
    with routed([prefill.url], [decode.url]) as port, contextlib.closing(dial(port)) as connection:
        assert post(connection, {"prompt": "a"}) == (400, b'{"error": "too long"}')
        assert post(connection, {"prompt": "a"})[0] == 400
    assert decode.asked == []


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_a_worker_that_is_down_is_named(workers: Callable[[], Worker], role: str) -> None:
    up, down = workers().url, f"http://127.0.0.1:{free_port()}"
    pair = ([down], [up]) if role == "prefill" else ([up], [down])
    with routed(*pair) as port, contextlib.closing(dial(port)) as connection:
        status, body = post(connection, {"prompt": "a"})
        assert status == 502 and f"{role} worker {down}" in json.loads(body)["error"]["message"]


def test_a_prefill_worker_that_is_too_slow_is_given_up(workers: Callable[[], Worker]) -> None:
    prefill, decode = workers(), workers()
    prefill.pause_s = 3.0
    with routed([prefill.url], [decode.url], "--timeout-s", "0.2") as port, contextlib.closing(dial(port)) as client:
        status, body = post(client, {"prompt": "a"})
    assert status == 502 and "no answer in 0.2 s" in json.loads(body)["error"]["message"]


def test_a_stream_that_breaks_off_is_broken_off_for_the_client_too(workers: Callable[[], Worker]) -> None:
    prefill, decode = workers(), workers()
    decode.cut = True
    with (
        routed([prefill.url], [decode.url]) as port,
        contextlib.closing(dial(port)) as connection,
        pytest.raises(http.client.IncompleteRead),
    ):
        post(connection, {"prompt": "a", "stream": True})


def test_a_client_that_goes_away_ends_the_request_to_the_worker(workers: Callable[[], Worker]) -> None:
    prefill, decode = workers(), workers()
    decode.pause_s = 0.3
    with routed([prefill.url], [decode.url]) as port:
        connection = dial(port)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "stream": True}))
        connection.getresponse().read(1)
        assert connection.sock is not None
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        assert decode.closed.wait(5)


@pytest.mark.parametrize(
    "raw",
    [
        b"POST /v1/completions HTTP/1.1\r\ncontent-length: 3\r\n\r\n{x}",
        b"POST /v1/completions HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"nonsense\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_answered_with_400(workers: Callable[[], Worker], raw: bytes) -> None:
    worker = workers()
    with routed([worker.url], [worker.url]) as port, socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(raw)
        assert sock.recv(100).startswith(b"HTTP/1.1 400 Bad Request")
        assert get(port, "/health")[0] == 200
