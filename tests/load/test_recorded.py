"""Requests of a file: how long they are said to be, and what is sent for them."""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import orjson

from prony.load.request import Target
from prony.load.workload import Workload, prepare
from prony.spec.load import LoadPlan
from tests.load.conftest import Answer, FaultyServer
from tests.load.test_prompts import body_of

Serve = Callable[[Answer], FaultyServer]
BODIES: list[dict[str, object]] = [
    {"prompt": [5, 6, 7]},
    {"prompt": "two words"},
    {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "why"}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
    {"messages": [{"role": "user", "content": "call"}], "tools": [{"type": "function"}]},
]


def plan(file: Path, kind: str, requests: int, **fields: object) -> LoadPlan:
    asked = {"concurrency": 1, "requests": requests, "workload": {"kind": kind, "file": str(file)}, **fields}
    return LoadPlan.model_validate(asked)


def replayed(tmp_path: Path, target: Target, bodies: list[dict[str, object]], **fields: object) -> Workload:
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(body) + "\n" for body in bodies))
    return prepare(target, plan(file, "request-log", len(bodies), **fields))


def inputs(work: Workload) -> list[int]:
    return [exchange.input_planned for exchange in work.measured]


def word_tokenizer(serve: Serve) -> FaultyServer:
    """A vLLM server: a token per word, begin-of-sequence where special tokens are asked, a template of 7."""

    def answer(connection: socket.socket, ordinal: int) -> None:
        asked = body_of(server.requests[ordinal])
        if "messages" in asked:
            count = 7 + sum(len(message["content"].split()) for message in asked["messages"])  # type: ignore[attr-defined]
        else:
            count = len(str(asked["prompt"]).split()) + bool(asked["add_special_tokens"])
        content = orjson.dumps({"tokens": list(range(count))})
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))

    server = serve(answer)
    return server


def test_a_log_is_as_long_as_the_servers_tokenizer_says_and_unknown_where_it_cannot(
    serve: Serve, tmp_path: Path
) -> None:
    target = Target(url=word_tokenizer(serve).url, model="m", tokenizer="vllm")
    work = replayed(tmp_path, target, BODIES)
    assert inputs(work) == [3, 3, 10, -1, -1] and work.lengths == "approximate"
    work = replayed(tmp_path, target, BODIES[:3])
    assert inputs(work) == [3, 3, 10] and work.lengths == "server-tokenizer"


def test_without_a_tokenizer_only_token_ids_have_a_length(tmp_path: Path) -> None:
    target = Target(url="http://127.0.0.1:1", model="m")
    work = replayed(tmp_path, target, BODIES)
    assert inputs(work) == [3, -1, -1, -1, -1] and work.lengths == "approximate"
    assert replayed(tmp_path, target, BODIES[:1]).lengths == "token-ids"


def test_a_recorded_body_is_sent_as_it_was_but_for_model_and_stream(tmp_path: Path) -> None:
    body = {"prompt": "a", "model": "theirs", "stream": True, "stream_options": {"x": 1}, "top_p": 0.9, "user": "u"}
    target = Target(url="http://127.0.0.1:1", model="ours", tokenizer="none")
    (whole,) = replayed(tmp_path, target, [body], stream=False).measured
    assert body_of(whole.payload) == {"prompt": "a", "model": "ours", "stream": False, "top_p": 0.9, "user": "u"}
    assert b"Accept: application/json\r\n" in whole.payload
    (streamed,) = replayed(tmp_path, target, [body]).measured
    assert body_of(streamed.payload)["stream_options"] == {"include_usage": True}


def test_only_a_request_whose_answer_cannot_end_early_has_a_length(tmp_path: Path) -> None:
    bodies: list[dict[str, object]] = [
        {"prompt": "a", "max_completion_tokens": 4, "max_tokens": 9, "ignore_eos": True},
        {"prompt": "a", "max_completion_tokens": None, "max_tokens": 9, "min_tokens": 9},
        {"prompt": "a", "max_tokens": None, "ignore_eos": True},
        {"prompt": "a", "max_tokens": 9},
        {"prompt": "a", "max_tokens": 9, "min_tokens": 3, "ignore_eos": False},
    ]
    work = replayed(tmp_path, Target(url="http://127.0.0.1:1", model="m"), bodies)
    assert [exchange.output_planned for exchange in work.measured] == [4, 9, -1, -1, -1]


def test_sharegpt_is_measured_by_the_servers_tokenizer(serve: Serve, tmp_path: Path) -> None:
    said = [{"from": "human", "value": "what is it"}, {"from": "gpt", "value": "it is this one"}]
    file = tmp_path / "s.json"
    file.write_text(json.dumps([{"conversations": said}]))
    target = Target(url=word_tokenizer(serve).url, model="m", tokenizer="vllm")
    for endpoint, length in (("completions", 4), ("chat", 10)):
        work = prepare(target, plan(file, "sharegpt", 1, endpoint=endpoint))
        (only,) = work.measured
        assert (only.input_planned, only.output_planned, work.lengths) == (length, 4, "server-tokenizer")
        assert body_of(only.payload)["min_tokens"] == 4
