"""The simulated server over real sockets: exact counts, known timing, faults on demand."""

import concurrent.futures
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prony.sim.server import main
from tests.sim.simulator import Simulator, run_to_end, simulator, start

ASK = {"prompt": [300, 301, 302], "max_tokens": 8, "ignore_eos": True}
USAGE = {"stream_options": {"include_usage": True}}
HI = {"messages": [{"role": "user", "content": " hello"}], "max_tokens": 5, "ignore_eos": True}


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Simulator]:
    with simulator("--ttft-ms", "5", "--itl-ms", "1", "--max-model-len", "1000") as server:
        yield server


@pytest.fixture
def server(shared_server: Simulator) -> Simulator:
    """A server without faults."""
    shared_server.ask("POST", "/fault")
    return shared_server


def text_of(events: list[tuple[float, Any]]) -> str:
    choices = [event["choices"][0] for _, event in events if event != "[DONE]" and event["choices"]]
    return "".join(choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in choices)


def test_a_stream_carries_exactly_the_tokens_asked_then_usage_then_done(server: Simulator) -> None:
    events = [event for _, event in server.events({**ASK, **USAGE})]
    assert len(events) == 10
    assert events[-1] == "[DONE]"
    assert events[-2]["choices"] == []
    assert events[-2]["usage"] == {"prompt_tokens": 3, "completion_tokens": 8, "total_tokens": 11}
    assert [event["choices"][0]["finish_reason"] for event in events[:-2]] == [None] * 7 + ["length"]


def test_usage_comes_only_when_asked_for_and_with_every_chunk_if_asked(server: Simulator) -> None:
    assert all(event == "[DONE]" or "usage" not in event for _, event in server.events(ASK))
    asked = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    events = [event for _, event in server.events({**ASK, **asked}) if event != "[DONE]"]
    assert [event["usage"]["completion_tokens"] for event in events] == [1, 2, 3, 4, 5, 6, 7, 8, 8]


def test_the_generated_text_has_as_many_tokens_as_usage_says(server: Simulator) -> None:
    text = text_of(server.events(ASK))
    assert server.json("/tokenize", {"model": "sim", "prompt": text})["count"] == 8


def test_a_chat_begins_with_a_role_chunk_without_a_token(server: Simulator) -> None:
    first, *rest, usage, done = [event for _, event in server.events({**HI, **USAGE}, chat=True)]
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(rest) == 5
    assert usage["usage"]["completion_tokens"] == 5
    assert usage["usage"]["prompt_tokens"] == server.json("/tokenize", {"messages": HI["messages"]})["count"]
    assert done == "[DONE]"


def test_a_reply_that_is_not_streamed_is_whole_and_keeps_the_connection(server: Simulator) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for path, ask in (("/v1/completions", ASK), ("/v1/chat/completions", HI), ("/v1/completions", ASK)):
        connection.request("POST", path, json.dumps(ask))
        body = json.loads(connection.getresponse().read())
        assert body["usage"]["completion_tokens"] == ask["max_tokens"]
        assert body["choices"][0]["finish_reason"] == "length"
    connection.close()


def test_text_and_token_ids_count_alike(server: Simulator) -> None:
    tokens = server.json("/tokenize", {"prompt": " some words in a row"})
    assert (tokens["count"], tokens["max_model_len"]) == (len(tokens["tokens"]), 1000)
    assert server.json("/detokenize", {"tokens": tokens["tokens"]}) == {"prompt": " some words in a row"}
    for prompt in (" some words in a row", tokens["tokens"], [tokens["tokens"]]):
        usage = server.json("/v1/completions", {**ASK, "prompt": prompt})["usage"]
        assert usage["prompt_tokens"] == tokens["count"]


def test_without_ignore_eos_an_output_may_end_early(server: Simulator) -> None:
    asked = {"prompt": [300], "max_tokens": 40}
    replies = [server.json("/v1/completions", asked) for _ in range(8)]
    assert {reply["choices"][0]["finish_reason"] for reply in replies} >= {"stop"}
    floor = [
        server.json("/v1/completions", {**asked, "min_tokens": 40})["usage"]["completion_tokens"] for _ in range(3)
    ]
    assert floor == [40] * 3


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/v1/completions", {"prompt": ""}, 400, "not empty"),
        ("/v1/completions", {"prompt": [1, -1]}, 400, "token ids"),
        ("/v1/completions", {"prompt": [1], "max_tokens": 0}, 400, "at least 1"),
        ("/v1/completions", {"prompt": [1], "max_tokens": 1000}, 400, "maximum context length is 1000"),
        ("/v1/completions", {"prompt": [1], "n": 2}, 400, "n must be 1"),
        ("/v1/completions", {"prompt": [1], "model": "other"}, 404, "does not exist"),
        ("/v1/completions", [1], 400, "JSON object"),
        ("/v1/chat/completions", {"messages": []}, 400, "messages"),
        ("/detokenize", {"tokens": [99_999_999]}, 400, "is not between"),
        ("/nowhere", {}, 404, "Not Found"),
        ("/fault?htp-500=1", {}, 400, "did you mean 'http-500'"),
    ],
)
def test_a_wrong_request_is_refused_with_the_reason(
    server: Simulator, path: str, body: Any, status: int, reason: str
) -> None:
    got, content = server.ask("POST", path, body)
    assert got == status
    assert reason in content.decode()


def test_what_is_not_http_is_refused_and_the_server_lives_on(server: Simulator) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")
    assert server.ask("GET", "/health") == (200, b"")
    assert server.json("/v1/models")["data"][0]["id"] == "sim"


def test_metrics_count_tokens_under_vllms_names(server: Simulator) -> None:
    before = [server.metric("prompt_tokens_total"), server.metric("generation_tokens_total")]
    server.json("/v1/completions", ASK)
    after = [server.metric("prompt_tokens_total"), server.metric("generation_tokens_total")]
    assert [b - a for a, b in zip(before, after, strict=True)] == [3, 8]
    assert server.metric("num_requests_running") == 0


def test_tokens_never_come_before_their_moment_and_do_not_drift() -> None:
    with simulator("--ttft-ms", "100", "--itl-ms", "10") as server:
        events = server.events({**ASK, "max_tokens": 40})
        moments = [at for at, event in events if event != "[DONE]"]
        late = [at - (0.1 + number * 0.01) for number, at in enumerate(moments)]
        assert min(late) > 0
        assert min(late[20:]) < min(late[:20]) + 0.005  # a drift of 1 ms per token would show 20 ms


def test_events_of_several_tokens_keep_the_time_per_token() -> None:
    with simulator("--ttft-ms", "10", "--itl-ms", "10", "--tokens-per-event", "4") as server:
        moments = [at for at, event in server.events({**ASK, "max_tokens": 9}) if event != "[DONE]"]
        assert len(moments) == 3
        assert moments[2] > 0.01 + 8 * 0.01


def test_a_role_chunk_comes_before_the_first_token_at_its_own_moment() -> None:
    with simulator("--ttft-ms", "300", "--role-chunk-ms", "50") as server:
        role, first, *_ = server.events(HI, chat=True)
        assert 0.05 < role[0] < 0.3 < first[0]


def test_requests_beyond_the_slots_wait_in_line() -> None:
    with simulator("--ttft-ms", "50", "--itl-ms", "0", "--slots", "2") as server:
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            ends = sorted(pool.map(lambda _: (server.events(ASK), time.monotonic() - began)[1], range(6)))
        assert all(end > wave * 0.05 for end, wave in zip(ends, (1, 1, 2, 2, 3, 3), strict=True))
        assert server.metric("num_requests_running") == server.metric("num_requests_waiting") == 0


def test_a_client_that_leaves_frees_its_slot() -> None:
    with simulator("--ttft-ms", "20000", "--slots", "1") as server:
        body = json.dumps({**ASK, "stream": True}).encode()
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
                raw.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
                assert raw.recv(100).startswith(b"HTTP/1.1 200")
                assert server.metric("num_requests_running") == 1
        deadline = time.monotonic() + 5
        while server.metric("num_requests_running") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.metric("num_requests_running") == server.metric("num_requests_waiting") == 0


def test_hundreds_of_streams_all_get_all_their_tokens() -> None:
    with simulator("--ttft-ms", "200", "--itl-ms", "5") as server:
        body = json.dumps({**ASK, **USAGE, "stream": True, "max_tokens": 20}).encode()
        request = b"POST /v1/completions HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (
            len(body),
            body,
        )
        sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=15) for _ in range(300)]
        for one in sockets:
            one.sendall(request)
        for one in sockets:
            with one, one.makefile("rb") as reply:
                content = reply.read()
            assert content.count(b'"text"') == 20
            assert b'"completion_tokens":20' in content
        assert server.metric("generation_tokens_total") == 300 * 20


def test_every_nth_request_answers_500(server: Simulator) -> None:
    server.ask("POST", "/fault?http-500=3")
    statuses = [server.ask("POST", "/v1/completions", ASK)[0] for _ in range(6)]
    assert statuses == [200, 200, 500, 200, 200, 500]


def test_every_nth_stream_has_garbage_in_it(server: Simulator) -> None:
    server.ask("POST", "/fault?garbage-sse=2")
    assert len(server.events(ASK)) == 9
    with pytest.raises(ValueError):
        server.events(ASK)
    assert len(server.events(ASK)) == 9


def test_every_nth_stream_closes_early(server: Simulator) -> None:
    server.ask("POST", "/fault?close-early=2")
    assert len(server.events(ASK)) == 9
    cut = server.events(ASK)
    assert len(cut) == 4
    assert cut[-1][1] != "[DONE]"


def test_every_nth_stream_hangs_in_the_middle(server: Simulator) -> None:
    server.ask("POST", "/fault?hang-stream=1")
    body = json.dumps({**ASK, "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=0.3) as raw:
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        received = b""
        with pytest.raises(TimeoutError):
            for _ in itertools.count():
                received += raw.recv(1 << 16)
    assert received.count(b'"text"') == 4
    assert b"[DONE]" not in received


def test_every_nth_first_token_is_slow(server: Simulator) -> None:
    server.ask("POST", "/fault?slow-first-token=2:0.4")
    quick, slow = server.events(ASK), server.events(ASK)
    assert slow[0][0] > 0.4 + 0.005
    assert slow[0][0] - quick[0][0] > 0.2
    assert len(slow) == len(quick)


def test_the_server_dies_in_the_middle_of_the_nth_request() -> None:
    with simulator("--fault", "die-after=2") as server:
        assert len(server.events(ASK)) == 9
        assert len(server.events(ASK)) == 4
        assert server.process.wait(5) == 1


@pytest.mark.parametrize(("fault", "says"), [("die-at-start", "die-at-start"), ("oom-at-load", "CUDA out of memory")])
def test_faults_at_start_end_the_process_with_a_reason(fault: str, says: str) -> None:
    code, output = run_to_end("--fault", fault)
    assert code == 1
    assert says in output


def test_a_server_that_hangs_at_start_listens_on_nothing_and_still_obeys() -> None:
    process = start("--fault", "hang-at-start")
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline().startswith("engine version: prony-sim")
        assert "hang-at-start" in output.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0


def test_a_server_that_ignores_term_must_be_killed() -> None:
    with simulator("--fault", "ignore-term") as server:
        os.kill(server.process.pid, signal.SIGTERM)
        time.sleep(0.2)
        assert server.ask("GET", "/health") == (200, b"")
        server.process.kill()


def test_term_ends_the_server_in_the_middle_of_a_stream() -> None:
    with simulator("--ttft-ms", "30000") as server, socket.create_connection(("127.0.0.1", server.port)) as raw:
        body = json.dumps({**ASK, "stream": True}).encode()
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        assert raw.recv(10)
        server.process.terminate()
        assert server.process.wait(5) == 0


def test_a_port_that_is_taken_or_an_option_that_is_wrong_is_one_clear_message() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, output = run_to_end(port=taken.getsockname()[1])
    assert (code, "address already in use" in output.lower(), "Traceback" in output) == (3, True, False)
    for options, says in ((("--tokens-per-event", "0"), "1 or more"), (("--fault", "boom"), "is not a fault")):
        code, output = run_to_end(*options)
        assert (code, says in output, "Traceback" in output) == (2, True, False)


def test_several_processes_serve_one_port_and_end_together() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    argv = [sys.executable, "-m", "prony.sim.server", "--port", str(port), "--model", "m", "--workers", "3"]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    lines = [server.stdout.readline() for _ in range(2)]
    assert any(f":{port}" in line for line in lines)
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    assert len(children) == 2
    deadline = time.monotonic() + 20
    listening = 0
    while listening < 3 and time.monotonic() < deadline:
        table = Path("/proc/net/tcp").read_text()
        listening = sum(f":{port:04X} 00000000:0000 0A" in line for line in table.splitlines())
        time.sleep(0.02)
    assert listening == 3
    server.terminate()
    assert server.wait(timeout=20) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    server.stdout.close()


def test_several_processes_need_a_port_of_their_own(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", "0", "--model", "m", "--workers", "2"]) == 2
    assert "must be named" in capfd.readouterr().out
