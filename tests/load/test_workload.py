"""What requests ask: lengths from distributions, shared prefixes, files, conversations; sent when they are due."""

import json
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest

from prony.base.errors import ConfigError, LaunchError
from prony.load.request import Target
from prony.load.workload import prepare
from prony.measure.eventlog import Fault
from prony.spec.load import LoadPlan
from tests.load.conftest import Answer, FaultyServer, Truth
from tests.load.load import faults, load, record
from tests.load.test_faults import chunk

IDS = Target(url="http://127.0.0.1:1", model="m", tokenizer="ids")
Serve = Callable[[Answer], FaultyServer]


def plan(**fields: object) -> LoadPlan:
    return LoadPlan.model_validate({"isl": 64, "osl": 16, "concurrency": 2, "requests": 200, **fields})


def bodies(work_plan: LoadPlan, target: Target = IDS) -> list[dict[str, object]]:
    return [orjson.loads(x.payload.partition(b"\r\n\r\n")[2]) for x in prepare(target, work_plan).measured]


def test_lengths_follow_their_distributions() -> None:
    asked = {
        "kind": "random",
        "input": {"kind": "lognormal", "median": 100, "sigma": 0.5, "most": 400},
        "output": {"kind": "normal", "mean": 50, "std": 5, "least": 40},
    }
    work = prepare(IDS, plan(requests=3000, workload=asked))
    inputs = np.array([x.input_planned for x in work.measured])
    outputs = np.array([x.output_planned for x in work.measured])
    assert np.median(inputs) == pytest.approx(100, rel=0.05) and inputs.max() <= 400
    assert outputs.mean() == pytest.approx(50.3, abs=0.5) and outputs.min() >= 40
    prompts = [body["prompt"] for body in bodies(plan(requests=50, workload=asked))]
    assert all(isinstance(prompt, list) for prompt in prompts) and work.lengths == "token-ids"


def test_an_empirical_distribution_gives_its_lengths_by_weight() -> None:
    asked = {"kind": "random", "output": {"kind": "empirical", "lengths": [1, 9], "weights": [1, 3]}}
    found = Counter(x.output_planned for x in prepare(IDS, plan(requests=2000, workload=asked)).measured)
    assert set(found) == {1, 9} and found[9] / 2000 == pytest.approx(0.75, abs=0.03)


def test_a_distribution_outside_its_bounds_is_refused() -> None:
    asked = {"kind": "random", "input": {"kind": "normal", "mean": 10, "std": 1, "least": 1000}}
    with pytest.raises(ConfigError, match="almost never between 1000"):
        prepare(IDS, plan(workload=asked))


def test_prompts_share_prefixes_by_zipf_and_differ_behind_them() -> None:
    asked = {"kind": "random", "prefix": {"groups": 4, "length": 48, "zipf": 1.0}}
    prompts = [tuple(body["prompt"]) for body in bodies(plan(requests=1000, workload=asked))]  # type: ignore[arg-type]
    assert all(len(prompt) == 64 for prompt in prompts) and len(set(prompts)) == 1000
    shares = sorted((n / 1000 for n in Counter(prompt[:48] for prompt in prompts).values()), reverse=True)
    assert shares == pytest.approx([0.48, 0.24, 0.16, 0.12], abs=0.04)


def test_a_prefix_that_leaves_no_room_is_refused() -> None:
    asked = {"kind": "random", "prefix": {"groups": 1, "length": 64}}
    with pytest.raises(LaunchError, match="the shared prefix takes 64, prompts of 64 are asked"):
        prepare(IDS, plan(workload=asked))


def test_more_tokens_than_a_client_can_hold_are_refused_whatever_draws_them() -> None:
    asked = {"kind": "random", "output": {"kind": "uniform", "least": 9_000_000, "most": 10_000_000}}
    with pytest.raises(ConfigError, match="tokens in 200 requests; at most 1,000,000,000"):
        prepare(IDS, plan(workload=asked))


def test_a_prefix_cache_is_asked_to_forget_only_where_requests_have_nothing_in_common(serve: Serve) -> None:
    def tokens(connection: socket.socket, ordinal: int) -> None:
        content = orjson.dumps({"tokens": list(range(300)), "prompt": "x"})
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))

    target = Target(url=serve(tokens).url, model="m", tokenizer="llamacpp")
    alone, shared = {"kind": "random"}, {"kind": "random", "prefix": {"groups": 2, "length": 8}}
    assert all(body["cache_prompt"] is False for body in bodies(plan(requests=3, workload=alone), target))
    assert all("cache_prompt" not in body for body in bodies(plan(requests=3, workload=shared), target))


def test_an_open_loop_sends_when_requests_are_due_whatever_the_server_does(truth: Truth) -> None:
    truth.configure(ttft_us=30_000, itl_us=1_000)
    arrival = {"kind": "open", "process": "constant", "stages": [{"rate": 200}]}
    log = load(truth.url, concurrency=64, requests=60, osl=4, arrival=arrival)
    assert log.arrival == "open" and faults(log) == [Fault.OK] * 60
    assert np.array_equal(np.diff(log.requests.scheduled), np.full(59, 5_000_000))
    lag = log.requests.sent - log.requests.scheduled
    assert lag.min() >= 0 and np.median(lag) < 5e6
    assert truth.stats()["peak_inflight"] > 1


def test_what_is_due_beyond_the_slots_waits_and_its_lag_tells(truth: Truth) -> None:
    truth.configure(ttft_us=50_000)
    arrival = {"kind": "open", "process": "constant", "stages": [{"rate": 1000}]}
    log = load(truth.url, concurrency=1, requests=4, osl=1, arrival=arrival)
    assert faults(log) == [Fault.OK] * 4
    assert log.requests.sent[3] - log.requests.scheduled[3] > 100e6


def test_several_processes_follow_one_schedule(truth: Truth) -> None:
    arrival = {"kind": "open", "process": "constant", "stages": [{"rate": 400}]}
    log = load(truth.url, workers=2, concurrency=8, requests=40, osl=2, arrival=arrival)
    assert np.array_equal(log.requests.scheduled, np.arange(40) * 2_500_000)


def log_lines(*entries: object) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def test_a_request_log_is_replayed_as_it_was_at_its_times(truth: Truth, tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "temperature": 0.7, "model": "other"}
    plain = {"prompt": [1, 2, 3], "max_tokens": 5, "ignore_eos": True}
    file = tmp_path / "log.jsonl"
    file.write_text(log_lines({"timestamp": 100.0, "body": chat}, {"timestamp": 100.1, "body": plain}))
    workload = {"kind": "request-log", "file": str(file)}
    asked = plan(isl=None, osl=None, requests=2, workload=workload)
    first, second = bodies(asked)
    assert first == {**chat, "model": "m", "stream": True, "stream_options": {"include_usage": True}}
    assert second["prompt"] == [1, 2, 3]
    log = load(truth.url, isl=None, osl=None, requests=2, concurrency=2, workload=workload, arrival={"kind": "timed"})
    assert log.requests.output_planned.tolist() == [-1, 5] and faults(log) == [Fault.OK] * 2
    assert np.array_equal(log.requests.scheduled, [0, 100_000_000])


def test_sharegpt_asks_the_first_question_for_as_long_an_answer(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    talks = [[("human", f"question {n}"), ("gpt", "a" * 40), ("human", "more")] for n in range(3)]
    talks.append([("gpt", "begins itself"), ("human", "x")])
    entries = [{"conversations": [{"from": who, "value": text} for who, text in talk]} for talk in talks]
    file.write_text(json.dumps(entries))
    workload = {"kind": "sharegpt", "file": str(file)}
    found = bodies(plan(isl=None, osl=None, requests=3, endpoint="chat", workload=workload))
    assert [body["messages"][0]["content"] for body in found] == [f"question {n}" for n in range(3)]  # type: ignore[index]
    assert {body["max_tokens"] for body in found} == {10}
    with pytest.raises(ConfigError, match="4 requests are asked, warm-ups included; the file has 3 conversations"):
        bodies(plan(isl=None, osl=None, requests=4, workload=workload))


ENTRY = '{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}'


@pytest.mark.parametrize(
    ("kind", "content", "says"),
    [
        ("request-log", '{"prompt": "a"}\n{oops\n', r"log:2: not JSON"),
        ("request-log", '{"prompt": "a"}\n\n[1]\n', r"log:3: no request"),
        ("request-log", '{"prompt": "a", "messages": []}\n', r"log:1: no request"),
        ("request-log", '{"messages": []}\n', r"log:1: 'messages' is no list of messages"),
        ("request-log", '{"prompt": ["a", "b"]}\n', r"log:1: 'prompt' is neither text nor token ids"),
        ("request-log", '{"prompt": "a", "n": 2}\n', r"log:1: asks for several answers"),
        ("request-log", '{"prompt": "a", "max_tokens": "5"}\n', r"log:1: 'max_tokens' is no whole number"),
        ("request-log", '{"prompt": "a", "max_completion_tokens": 0}\n', r"log:1: 'max_completion_tokens' is no whole"),
        ("request-log", '{"body": {"prompt": "a"}, "timestamp": "now"}\n', r"log:1: 'timestamp' is no number"),
        ("request-log", '{"prompt": "a"}\n{"prompt": "\udcff"}\n', r"log:2: not UTF-8"),
        ("request-log", '{"prompt": "a"}\n', "2 requests are asked, warm-ups included; the file has 1 requests"),
        ("request-log", "\n", "log:1: the file is empty"),
        ("sharegpt", "", "log:1: the file is empty"),
        ("sharegpt", "[\n}", r"log:2: not JSON"),
        ("sharegpt", "{}", "log:1: holds no list"),
        ("sharegpt", f'[{ENTRY},\n\n {{"id": 1}}]', "log:3: entry 2: no list 'conversations'"),
        ("sharegpt", '[{"conversations": [{"from": "human"}]}]', "log:1: entry 1: a turn has no 'from' or no 'value'"),
        ("sharegpt", "[\n" + ENTRY.replace('"a"', "1") + "]", "log:2: entry 1: 'value' is no text"),
        ("sharegpt", f"[{ENTRY}]", "2 requests are asked, warm-ups included; the file has 1 conversations"),
    ],
)
def test_each_fault_of_a_file_is_told_with_its_place(tmp_path: Path, kind: str, content: str, says: str) -> None:
    file = tmp_path / "log"
    file.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=says) as caught:
        prepare(IDS, plan(isl=None, osl=None, requests=2, workload={"kind": kind, "file": str(file)}))
    assert caught.value.fix


def timed(file: Path, **fields: object) -> LoadPlan:
    workload = {"kind": "request-log", "file": str(file)}
    return plan(isl=None, osl=None, workload=workload, arrival={"kind": "timed"}, **fields)


def test_a_log_in_the_order_of_ends_is_replayed_in_the_order_of_times(tmp_path: Path) -> None:
    file = tmp_path / "log"
    rows = [(7.0, 1), (5.0, 2), (9.0, 3), (6.5, 4)]
    file.write_text(
        log_lines(*({"timestamp": at, "body": {"prompt": [n], "max_tokens": n, "min_tokens": n}} for at, n in rows))
    )
    work = prepare(IDS, timed(file, requests=3, warmups=1))
    assert [x.output_planned for x in work.measured] == [2, 4, 1] and [x.output_planned for x in work.warmups] == [3]
    source = work.source(0, 1)
    source.begin(0)
    due = []
    while (at := source.due()) is not None:
        due.append(at)
        source.take()
    assert due == [0, 1_500_000_000, 2_000_000_000]


def test_a_line_without_its_time_is_refused_where_times_are_needed_and_only_there(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text(log_lines({"timestamp": 1, "body": {"prompt": "a"}}, {"prompt": "b"}))
    with pytest.raises(ConfigError, match="log:2: no 'timestamp', which arrival 'timed' needs"):
        prepare(IDS, timed(file, requests=1))
    work = prepare(IDS, plan(isl=None, osl=None, requests=2, workload={"kind": "request-log", "file": str(file)}))
    assert [x.input_planned for x in work.measured] == [-1, -1] == [x.output_planned for x in work.measured]


def test_times_further_apart_than_any_load_may_last_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text(log_lines(*({"timestamp": at, "body": {"prompt": "a"}} for at in (0, 1e300))))
    with pytest.raises(ConfigError, match="days"):
        prepare(IDS, timed(file, requests=2))


def test_a_file_that_is_gone_or_has_changed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log"
    workload = {"kind": "request-log", "file": str(file), "sha256": "0" * 64}
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        prepare(IDS, plan(isl=None, osl=None, requests=1, workload=workload))
    file.write_text('{"prompt": "a"}\n')
    with pytest.raises(ConfigError, match="has changed since this load was planned"):
        prepare(IDS, plan(isl=None, osl=None, requests=1, workload=workload))


def chat_server(serve: Serve, *, fail_at: int = -1) -> FaultyServer:
    """Answers the nth request with the words `answer n`; one with 500."""

    def answer(connection: socket.socket, ordinal: int) -> None:
        if ordinal == fail_at:
            connection.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
            return
        words = [{"delta": {"content": part}, "finish_reason": None} for part in ("answer ", str(ordinal))]
        events = [{"choices": [word]} for word in [*words, {"delta": {}, "finish_reason": "length"}]]
        body = b"".join(chunk(b"data: " + orjson.dumps(event) + b"\n\n") for event in events)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")

    return serve(answer)


def test_each_turn_carries_all_that_was_said_before(serve: Serve) -> None:
    server = chat_server(serve)
    log = load(server.url, endpoint="chat", requests=6, isl=5, workload={"kind": "multi-turn", "turns": 3})
    assert faults(log) == [Fault.OK] * 6
    asked = [orjson.loads(request.partition(b"\r\n\r\n")[2])["messages"] for request in server.requests]
    assert [len(messages) for messages in asked] == [1, 3, 5, 1, 3, 5]
    assert [message["content"] for message in asked[2]][1::2] == ["answer 0", "answer 1"]
    assert asked[2][:3] == asked[1]
    assert log.requests.input_planned.tolist() == [5, 5 + 8 + 5, 5 + 8 + 5 + 8 + 5] * 2


def test_conversations_go_on_from_whole_answers_too(serve: Serve) -> None:
    def answer(connection: socket.socket, ordinal: int) -> None:
        said = {"message": {"role": "assistant", "content": f"whole {ordinal}"}, "finish_reason": "length"}
        body = orjson.dumps({"choices": [said], "usage": {"prompt_tokens": 5, "completion_tokens": 8}})
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    server = serve(answer)
    log = load(server.url, endpoint="chat", requests=3, stream=False, workload={"kind": "multi-turn", "turns": 3})
    assert faults(log) == [Fault.OK] * 3 and not log.streamed
    asked = [orjson.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]
    assert all(body["stream"] is False and "stream_options" not in body for body in asked)
    assert [message["content"] for message in asked[2]["messages"]][1::2] == ["whole 0", "whole 1"]


def test_a_failed_turn_ends_its_conversation_and_no_other(serve: Serve) -> None:
    server = chat_server(serve, fail_at=1)
    log = load(server.url, endpoint="chat", requests=6, workload={"kind": "multi-turn", "turns": 3})
    found = faults(log)
    assert found == [Fault.OK, Fault.HTTP_STATUS, Fault.CANCELLED, Fault.OK, Fault.OK, Fault.OK]
    assert "an earlier turn of its conversation failed" in dict(log.messages)[2]


def test_a_conversation_thinks_between_its_turns(serve: Serve) -> None:
    server = chat_server(serve)
    workload = {"kind": "multi-turn", "turns": 2, "think_s": 0.05}
    log = load(server.url, endpoint="chat", requests=20, concurrency=2, workload=workload)
    assert faults(log) == [Fault.OK] * 20
    pauses = log.requests.sent[1::2] - log.requests.end[0::2]
    assert np.all(pauses >= 0) and 0.01e9 < pauses.mean() < 1e9
    assert np.all(log.requests.scheduled[1::2] >= log.requests.end[0::2])


def test_an_interrupted_conversation_leaves_a_complete_log(serve: Serve) -> None:
    holder: list[FaultyServer] = []

    def die(connection: socket.socket, ordinal: int) -> None:
        holder[0].close()

    holder.append(serve(die))
    recording = record(holder[0].url, endpoint="chat", requests=12, workload={"kind": "multi-turn", "turns": 3})
    assert recording.log is not None and len(recording.log.requests) == 12
    assert Fault.OK not in faults(recording.log)
