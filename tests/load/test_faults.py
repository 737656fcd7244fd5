"""Servers that misbehave: each fault is named, nothing hangs, and the log is complete."""

import json
import socket
import struct
import time
from collections.abc import Callable

import pytest

from prony.base.errors import LaunchError
from prony.load import http
from prony.load.probe import only_model
from prony.load.request import Target
from prony.measure.eventlog import NEVER, EventLog, Fault, Kind
from tests.load.conftest import Answer, FaultyServer, free_port
from tests.load.load import faults, load

Serve = Callable[[Answer], FaultyServer]
OK_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CLOSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
TOKEN = b'data: {"choices":[{"text":" a","finish_reason":null}]}\n\n'
LAST = b'data: {"choices":[{"text":" b","finish_reason":"length"}]}\n\n'
DONE = b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def stream(*events: bytes) -> bytes:
    return OK_HEAD + b"".join(map(chunk, events)) + b"0\r\n\r\n"


def only(data: bytes) -> Answer:
    """Send this and keep the connection."""
    return lambda connection, ordinal: connection.sendall(data)


def then_close(data: bytes) -> Answer:
    def answer(connection: socket.socket, ordinal: int) -> None:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_RDWR)

    return answer


def first_message(log: EventLog) -> str:
    return log.messages[0][1]


@pytest.mark.parametrize(
    ("answer", "fault", "says"),
    [
        (only(b"HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nno memory"), Fault.HTTP_STATUS, "500: no memory"),
        (then_close(b"HTTP/1.1 502 Bad\r\n\r\n<html>"), Fault.HTTP_STATUS, "502: <html>"),
        (only(stream(TOKEN, b'data: {"error":{"message":"KV full"}}\n\n')), Fault.STREAM_ERROR, "KV full"),
        (only(stream(b'{"error":{"message":"no such model"}}')), Fault.STREAM_ERROR, "no such model"),
        (only(stream(TOKEN, b"data: {oops\n\n", DONE)), Fault.GARBAGE, "invalid JSON"),
        (only(stream(TOKEN, b'data: {"choices":[{"text":"\xff"}]}\n\n', DONE)), Fault.GARBAGE, "invalid JSON"),
        (only(stream(b"<html>busy</html>")), Fault.GARBAGE, "<html>busy"),
        (only(stream(b"data: 17\n\n", DONE)), Fault.GARBAGE, "JSON object"),
        (only(b"SSH-2.0-OpenSSH_9.2\r\n"), Fault.GARBAGE, "not an HTTP"),
        (only(OK_HEAD + b"zz\r\n"), Fault.GARBAGE, "not a number"),
        (only(OK_HEAD + b"-ff\r\n" + TOKEN), Fault.GARBAGE, "not a number"),
        (only(OK_HEAD + chunk(TOKEN) + b"-4\r\n" + TOKEN), Fault.GARBAGE, "not a number"),
        (only(OK_HEAD + b"3\r\nabcdef\r\n"), Fault.GARBAGE, "longer than its size"),
        (then_close(OK_HEAD + chunk(TOKEN)), Fault.CLOSED_EARLY, "closed by the server after"),
        (then_close(CLOSE_HEAD + TOKEN + b'data: {"cho'), Fault.CLOSED_EARLY, "without a finish"),
        (then_close(CLOSE_HEAD + TOKEN + b"dat"), Fault.CLOSED_EARLY, "without a finish"),
        (then_close(CLOSE_HEAD + b"<html>busy"), Fault.GARBAGE, "<html>busy"),
        (then_close(OK_HEAD + b"40\r\ndata: {"), Fault.CLOSED_EARLY, "closed by the server after"),
        (then_close(b""), Fault.CLOSED_EARLY, "before any answer"),
        (only(stream(TOKEN)), Fault.CLOSED_EARLY, "without a finish reason"),
        (only(stream(DONE)), Fault.NO_TOKENS, "without a generated token"),
        (only(stream(b'data: {"choices":[{"text":"","finish_reason":"stop"}]}\n\n', DONE)), Fault.NO_TOKENS, ""),
    ],
)
def test_each_fault_has_its_name_and_a_message(serve: Serve, answer: Answer, fault: Fault, says: str) -> None:
    log = load(serve(answer).url, requests=2, request_timeout_s=20)
    assert faults(log) == [fault] * 2
    assert says in first_message(log)
    assert len(first_message(log)) < 400


@pytest.mark.parametrize(
    "answer",
    [
        then_close(CLOSE_HEAD + TOKEN + LAST + DONE),
        then_close(CLOSE_HEAD + TOKEN + LAST + b"data: [DONE]"),
        then_close(OK_HEAD + chunk(TOKEN) + chunk(LAST) + chunk(DONE)),
        only(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(TOKEN + LAST), TOKEN + LAST)),
        only(b"HTTP/1.1 100 Continue\r\n\r\n" + stream(TOKEN, LAST, DONE)),
        only(stream(b": keep-alive\n\n", TOKEN.replace(b"\n", b"\r\n"), LAST, DONE)[:-2] + b"X-Sum: 0\r\n\r\n"),
    ],
    ids=["close", "no-last-line", "no-last-chunk", "length", "interim", "crlf-comment-trailer"],
)
def test_every_proper_way_to_end_an_answer_is_accepted(serve: Serve, answer: Answer) -> None:
    log = load(serve(answer).url, requests=3, request_timeout_s=20)
    assert faults(log) == [Fault.OK] * 3
    assert [int(kind) for kind in log.events.kind].count(Kind.CONTENT) == 6


def test_a_hanging_server_times_out_each_request_and_keeps_what_came(serve: Serve) -> None:
    began = time.monotonic()
    log = load(serve(only(OK_HEAD + chunk(TOKEN))).url, concurrency=2, requests=4, request_timeout_s=0.2)
    assert faults(log) == [Fault.TIMEOUT] * 4
    assert len(log.events) == 4
    assert time.monotonic() - began < 20


def test_a_server_that_never_answers_is_given_up_after_three_time_outs_a_lane(serve: Serve) -> None:
    log = load(serve(only(b"")).url, concurrency=2, requests=30, request_timeout_s=0.1)
    assert faults(log).count(Fault.TIMEOUT) in (6, 7)
    assert faults(log).count(Fault.CANCELLED) == 30 - faults(log).count(Fault.TIMEOUT)
    assert "no longer answers" in log.messages[-1][1]


def test_a_line_without_end_is_cut_off(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BODY_LIMIT_BYTES", 200_000)

    def endless(connection: socket.socket, ordinal: int) -> None:
        connection.sendall(OK_HEAD)
        while True:
            connection.sendall(chunk(b"data: " + b"x" * 10_000))

    log = load(serve(endless).url, requests=2)
    assert faults(log) == [Fault.GARBAGE] * 2
    assert "without an end" in first_message(log)


def test_a_head_without_end_is_cut_off(serve: Serve) -> None:
    log = load(serve(only(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000)).url)
    assert faults(log) == [Fault.GARBAGE]


def test_a_reset_in_mid_stream_is_closed_early(serve: Serve) -> None:
    def reset(connection: socket.socket, ordinal: int) -> None:
        connection.sendall(OK_HEAD + chunk(TOKEN))
        time.sleep(0.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    log = load(serve(reset).url)
    assert faults(log) == [Fault.CLOSED_EARLY]
    assert "reset" in first_message(log)


def test_a_reset_before_any_answer_is_no_fault_of_the_connection(serve: Serve) -> None:
    def reset(connection: socket.socket, ordinal: int) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    log = load(serve(reset).url, warmups=0)
    assert faults(log) == [Fault.CLOSED_EARLY]
    assert "reset by the server before any answer" in first_message(log)


def test_a_lane_that_waits_since_the_warm_up_is_not_used_twice(serve: Serve) -> None:
    def busy_at_first(connection: socket.socket, ordinal: int) -> None:
        if ordinal < 2:
            connection.sendall(b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
            return
        time.sleep(0.1)
        connection.sendall(stream(TOKEN, LAST, DONE))

    log = load(serve(busy_at_first).url, concurrency=2, warmups=3, requests=40, request_timeout_s=5)
    assert faults(log) == [Fault.OK] * 40


def test_a_count_that_no_answer_has_is_no_count(serve: Serve) -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}\n\n' % (2**62 - 1, 2**62 - 1)
    log = load(serve(only(stream(TOKEN, LAST, usage, DONE))).url, requests=3)
    assert faults(log) == [Fault.OK] * 3
    assert log.requests.output_counted.tolist() == log.requests.input_counted.tolist() == [-1] * 3


def test_a_server_that_dies_in_mid_run_leaves_a_complete_log(serve: Serve) -> None:
    holder: list[FaultyServer] = []

    def die_at_fifth(connection: socket.socket, ordinal: int) -> None:
        if ordinal == 4:
            holder[0].close()
        else:
            connection.sendall(stream(TOKEN, LAST, DONE))

    holder.append(serve(die_at_fifth))
    log = load(holder[0].url, concurrency=2, requests=40)
    found = faults(log)
    assert len(found) == 40 and found.count(Fault.OK) >= 3
    assert found.count(Fault.CONNECT) >= 6 and found[-1] is Fault.CANCELLED
    assert log.requests.sent[-1] == NEVER
    assert dict(log.messages)[39].startswith("not sent")


def test_a_connection_that_the_server_dropped_while_idle_is_replaced(serve: Serve) -> None:
    server = serve(then_close(stream(TOKEN, LAST, DONE)))
    log = load(server.url, requests=4)
    assert faults(log) == [Fault.OK] * 4
    assert log.client.connections >= 4


def test_connection_close_is_obeyed(serve: Serve) -> None:
    head = OK_HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    server = serve(only(stream(TOKEN, LAST, DONE).replace(OK_HEAD, head)))
    log = load(server.url, requests=3)
    assert faults(log) == [Fault.OK] * 3
    assert len(set(log.requests.connection.tolist())) == 3


def test_no_server_is_a_launch_error_that_names_the_address() -> None:
    port = free_port()
    with pytest.raises(LaunchError, match=f"127.0.0.1:{port}: Connection refused"):
        load(f"http://127.0.0.1:{port}")


def test_a_server_that_refuses_every_warm_up_is_not_measured(serve: Serve) -> None:
    server = serve(only(b"HTTP/1.1 404 No\r\nContent-Length: 13\r\n\r\nno such model"))
    with pytest.raises(LaunchError, match="404: no such model"):
        load(server.url, warmups=2)


def test_usage_as_it_goes_gives_the_tokens_of_each_event(serve: Serve) -> None:
    def event(text: str, completion: int, finish: str | None = None) -> bytes:
        choice = {"text": text, "finish_reason": finish}
        usage = {"prompt_tokens": 5, "completion_tokens": completion, "prompt_tokens_details": {"cached_tokens": 2}}
        return b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n\n"

    server = serve(only(stream(event(" a", 1), event("", 2), event(" b c", 4), event("", 4, "length"), DONE)))
    log = load(server.url)
    assert log.events.tokens.tolist() == [1, 1, 2, -1, -1]
    assert log.events.kind.tolist() == [Kind.CONTENT] * 3 + [Kind.USAGE, Kind.DONE]
    assert (log.requests.output_counted[0], log.requests.cached_counted[0]) == (4, 2)


def test_tool_calls_are_tokens(serve: Serve) -> None:
    call = b'data: {"choices":[{"delta":{"tool_calls":[{"index":0}]},"finish_reason":"tool_calls"}]}\n\n'
    log = load(serve(only(stream(call, DONE))).url, endpoint="chat")
    assert log.events.kind.tolist() == [Kind.TOOL, Kind.DONE]
    assert faults(log) == [Fault.OK]


@pytest.mark.parametrize("listed", [5, {"id": "m"}, [5], None])
def test_a_list_of_models_that_is_none_is_told(serve: Serve, listed: object) -> None:
    body = json.dumps({"data": listed}).encode()
    server = serve(only(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)))
    with pytest.raises(LaunchError, match="names no model"):
        only_model(Target(url=server.url, model=""))
