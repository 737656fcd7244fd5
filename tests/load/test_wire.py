"""What the wire does beside one plain request after the other: TLS, several processes, limits, politeness."""

import contextlib
import gzip
import itertools
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from prony.base.errors import LaunchError
from prony.load import wire
from prony.load.address import Address
from prony.load.request import Target
from prony.load.run import run_load
from prony.load.wire import require_sockets
from prony.measure.eventlog import EventLog, Fault, Kind
from prony.spec.load import LoadPlan
from tests.conftest import optional_part
from tests.load.conftest import Answer, FaultyServer, Truth, read_request
from tests.load.load import faults, load, record
from tests.load.test_faults import DONE, LAST, OK_HEAD, TOKEN, chunk, first_message, only, stream

Serve = Callable[[Answer], FaultyServer]


def waiting_for_first(log: EventLog) -> int:
    """The most requests that waited for their first token at once."""
    events = log.events
    token = np.isin(events.kind, [Kind.CONTENT, Kind.REASONING])
    first = np.array([events.at[token & (events.request == i)].min() for i in range(len(log.requests))])
    steps = sorted([(at, 1) for at in log.requests.sent] + [(at, -1) for at in first])
    return max(itertools.accumulate(change for _, change in steps))


def test_prefill_concurrency_bounds_who_waits_for_a_first_token(truth: Truth) -> None:
    truth.configure(ttft_us=20_000, itl_us=5_000)
    arrival = {"kind": "closed", "prefill_concurrency": 2}
    log = load(truth.url, concurrency=8, requests=24, osl=16, arrival=arrival)
    assert faults(log) == [Fault.OK] * 24
    assert waiting_for_first(log) == 2
    assert truth.stats()["peak_inflight"] > 2


def test_failed_requests_free_their_place_among_those_that_wait(serve: Serve) -> None:
    server = serve(only(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"))
    log = load(server.url, concurrency=4, requests=12, arrival={"kind": "closed", "prefill_concurrency": 1})
    assert faults(log) == [Fault.HTTP_STATUS] * 12


def test_the_slots_of_a_ramp_begin_one_after_the_other(truth: Truth) -> None:
    log = load(truth.url, concurrency=8, requests=8, osl=4, arrival={"kind": "closed", "ramp_s": 0.2})
    gaps_s = np.diff(np.sort(log.requests.sent)) / 1e9
    assert np.all(gaps_s > 0.015)


def test_the_first_sends_of_a_closed_loop_do_not_burst(truth: Truth) -> None:
    log = load(truth.url, concurrency=16, requests=16)
    assert np.array_equal(np.diff(log.requests.scheduled), np.full(15, 50_000))


@pytest.mark.parametrize("workers", [2, 3])
def test_several_processes_share_one_load(truth: Truth, workers: int) -> None:
    recording = record(truth.url, workers=workers, concurrency=6, requests=31, warmups=6, osl=12)
    log, truths = recording.log, truth.dump()
    assert log is not None and faults(log) == [Fault.OK] * 31
    assert log.client.workers == workers and log.client.connections == 6
    assert truth.stats()["peak_inflight"] <= 6 and truth.stats()["completed"] == 37
    for request in range(31):
        seen = log.events.at[(log.events.request == request) & (log.events.kind == Kind.CONTENT)]
        assert len(seen) == 12
        assert np.all(seen + recording.origin_ns >= np.asarray(truths[request]["t_events"]))
    assert np.all(log.requests.sent >= 0)


def test_no_server_is_the_same_error_from_several_processes() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(LaunchError, match="Connection refused"):
        record(f"http://127.0.0.1:{port}", workers=2, concurrency=4, requests=8)


def children() -> list[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in listed]


def test_a_killed_worker_is_told_and_none_is_left(truth: Truth) -> None:
    truth.configure(ttft_us=300_000, itl_us=300_000)
    before = set(children())

    def kill() -> None:
        deadline = time.monotonic() + 20
        while truth.stats()["requests"] < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        victim = next(pid for pid in children() if pid not in before)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(LaunchError, match="worker process of the load client was killed by SIGKILL"):
        record(truth.url, workers=2, concurrency=4, requests=8)
    killer.join()
    assert set(children()) == before


def test_a_server_that_asks_for_a_pause_gets_it(serve: Serve) -> None:
    busy = b"HTTP/1.1 429 Slow down\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy"

    def answer(connection: socket.socket, ordinal: int) -> None:
        connection.sendall(busy if ordinal == 0 else stream(TOKEN, LAST, DONE))

    log = load(serve(answer).url, requests=2)
    assert faults(log) == [Fault.HTTP_STATUS, Fault.OK]
    assert first_message(log) == "status 429 (Retry-After: 1 s): busy"
    assert log.requests.sent[1] - log.requests.end[0] >= 1e9


def test_a_compressed_answer_is_named(serve: Serve) -> None:
    body = gzip.compress(TOKEN + LAST)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    log = load(serve(only(head + body)).url)
    assert faults(log) == [Fault.GARBAGE]
    assert "compressed (gzip)" in first_message(log)


def test_an_endless_stream_ends_with_its_time(serve: Serve) -> None:
    def endless(connection: socket.socket, ordinal: int) -> None:
        connection.sendall(OK_HEAD)
        while True:
            connection.sendall(chunk(TOKEN))
            time.sleep(0.001)

    log = load(serve(endless).url, requests=2, request_timeout_s=0.4)
    assert faults(log) == [Fault.TIMEOUT] * 2
    assert np.count_nonzero(log.events.kind == Kind.CONTENT) > 100


def test_a_whole_answer_is_one_event_with_its_usage(serve: Serve) -> None:
    usage = b'"usage":{"prompt_tokens":3,"completion_tokens":8}'
    body = b'{"choices":[{"message":{"content":"a b"},"finish_reason":"length"}],%s}' % usage
    answer = only(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    log = load(serve(answer).url, endpoint="chat", stream=False)
    assert faults(log) == [Fault.OK] and not log.streamed
    assert log.requests.output_counted.tolist() == [8] and log.events.kind.tolist() == [Kind.CONTENT]


def test_more_connections_than_ports_are_refused_before_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "range").write_text("40000\t40099\n")
    monkeypatch.setattr(wire, "_LOCAL_PORTS", tmp_path / "range")
    with pytest.raises(LaunchError, match="101 connections to h:1, this machine has 100 ports"):
        require_sockets(101, Address(socket.AF_INET, ("127.0.0.1", 1), "h:1", "h", False, 0.0))


class TlsServer:
    """Answers every request over TLS."""

    def __init__(self, folder: Path, body: bytes) -> None:
        key, self.certificate = folder / "key.pem", folder / "cert.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", self.certificate],
            check=True, capture_output=True,
        )  # fmt: skip
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._body = body
        self._threads: list[threading.Thread] = []
        self.url = f"https://localhost:{self._listener.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            thread.start()
            self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), self._context.wrap_socket(connection, server_side=True) as secure:
            while read_request(secure):
                secure.sendall(self._body)
        connection.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in [self._accepting, *self._threads]:
            thread.join(10)


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[TlsServer]:
    optional_part(subprocess.run(["which", "openssl"], check=False, capture_output=True).returncode == 0, "openssl")
    server = TlsServer(tmp_path, stream(TOKEN, TOKEN, LAST, DONE))
    yield server
    server.close()


def secure_load(server: TlsServer, **target: object) -> EventLog:
    plan = LoadPlan(isl=16, osl=8, concurrency=2, requests=6)
    asked = Target.model_validate({"url": server.url, "model": "m", **target})
    log = run_load(asked, plan, lambda _: None).log
    assert log is not None
    return log


def test_a_server_with_tls_is_loaded_with_kernel_stamps(tls: TlsServer) -> None:
    log = secure_load(tls, ca_file=str(tls.certificate))
    assert faults(log) == [Fault.OK] * 6
    assert np.count_nonzero(log.events.kind == Kind.CONTENT) == 18
    assert log.client.clock == "kernel" and log.client.tls_mean_s is not None and log.client.tls_mean_s > 0


def test_a_certificate_that_nobody_signed_is_refused_unless_told(tls: TlsServer) -> None:
    with pytest.raises(LaunchError, match="certificate verify failed"):
        secure_load(tls)
    assert faults(secure_load(tls, insecure=True)) == [Fault.OK] * 6


def test_a_missing_ca_file_is_named(tls: TlsServer, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"no\.pem: cannot be read as certificates"):
        secure_load(tls, ca_file=str(tmp_path / "no.pem"))


def test_a_line_of_ten_megabytes_is_read_once_and_named(serve: Serve) -> None:
    long = b'data: {"choices":[{"text":"' + b"x" * 10_000_000

    def answer(connection: socket.socket, ordinal: int) -> None:
        connection.sendall(OK_HEAD + chunk(TOKEN) + chunk(long + (b"\n\n" if ordinal else b'"}]}\n\n')) + chunk(LAST))
        connection.sendall(chunk(DONE) + b"0\r\n\r\n")

    began = time.monotonic()
    log = load(serve(answer).url, requests=2, request_timeout_s=60)
    assert faults(log) == [Fault.OK, Fault.GARBAGE]
    assert "invalid JSON" in first_message(log) and len(first_message(log)) < 400
    assert time.monotonic() - began < 30


def test_a_server_that_takes_the_connection_and_says_nothing_times_out(serve: Serve) -> None:
    log = load(serve(only(b"")).url, concurrency=2, requests=2, request_timeout_s=0.2)
    assert faults(log) == [Fault.TIMEOUT] * 2
    assert np.all(log.requests.headers == -1) and np.all(log.requests.end > log.requests.sent)
