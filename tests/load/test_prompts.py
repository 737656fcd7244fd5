"""Prompts: all different, of the asked length, carried by the request that each engine understands."""

import socket
from collections.abc import Callable

import orjson
import pytest

from prony.base.errors import LaunchError
from prony.load.request import Target
from prony.load.workload import prepare
from prony.spec.load import LoadPlan
from tests.load.conftest import Answer, FaultyServer

PLAN = LoadPlan(isl=6, osl=4, range_ratio=0.5, concurrency=2, requests=40, warmups=20, seed=3)


def body_of(payload: bytes) -> dict[str, object]:
    return dict(orjson.loads(payload.partition(b"\r\n\r\n")[2]))


def prompts_of(target: Target, plan: LoadPlan = PLAN) -> tuple[list[object], list[object]]:
    work = prepare(target, plan)
    return tuple([body_of(x.payload)["prompt"] for x in part] for part in (work.warmups, work.measured))  # type: ignore[return-value]


def test_no_two_prompts_are_equal_and_warm_ups_share_none_with_the_measured() -> None:
    warmups, measured = prompts_of(Target(url="http://127.0.0.1:1", model="m"))
    assert len({str(prompt) for prompt in warmups + measured}) == 60
    assert {len(str(prompt).split()) for prompt in measured} == {3, 4, 5, 6}


def test_the_same_seed_gives_the_same_requests_and_another_seed_others() -> None:
    target = Target(url="http://127.0.0.1:1", model="m")
    assert prompts_of(target) == prompts_of(target)
    assert prompts_of(target) != prompts_of(target, PLAN.model_copy(update={"seed": 4}))


def test_a_request_asks_for_exactly_the_planned_tokens_and_its_usage() -> None:
    work = prepare(Target(url="http://127.0.0.1:1/base/", model="m"), PLAN)
    first = work.measured[0]
    head = first.payload.partition(b"\r\n\r\n")[0]
    assert head.startswith(b"POST /base/v1/completions HTTP/1.1\r\nHost: 127.0.0.1:1\r\n")
    body = body_of(first.payload)
    assert body["max_tokens"] == body["min_tokens"] == first.output_planned
    assert body["ignore_eos"] is True and body["stream"] is True and body["temperature"] == 0
    assert body["stream_options"] == {"include_usage": True}
    ids = [line for line in head.split(b"\r\n") if line.startswith(b"X-Request-Id: ")]
    assert len(ids) == 1 and ids[0].endswith(b"-0")


def test_more_prompts_than_there_can_be_is_an_error_not_a_repeat() -> None:
    plan = LoadPlan(isl=1, osl=4, concurrency=1, requests=5000)
    with pytest.raises(LaunchError, match="no further prompt of 1 tokens"):
        prepare(Target(url="http://127.0.0.1:1", model="m"), plan)


def test_the_api_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(url="http://127.0.0.1:1", model="m", api_key_env="PRONY_TEST_KEY")
    with pytest.raises(LaunchError, match="PRONY_TEST_KEY"):
        prepare(target, PLAN)
    monkeypatch.setenv("PRONY_TEST_KEY", "sk-1")
    assert b"\r\nAuthorization: Bearer sk-1\r\n" in prepare(target, PLAN).measured[0].payload


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://host:1", "host:1", "http://h:1/?q", "http://h h:1", "http://", "http://h:99999", "http://h:0"),
        *("http://a..b:1", f"http://{'a' * 70}:1", "http://h:1/\u00e9"),
    ],
)
def test_a_url_that_cannot_be_loaded_is_told(url: str) -> None:
    with pytest.raises(LaunchError, match="not an address"):
        prepare(Target(url=url, model="m"), PLAN)


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(LaunchError, match="user or password") as error:
        prepare(Target(url="http://u:secret@h:1", model="m"), PLAN)
    assert "secret" not in str(error.value)


def vllm_tokenizer(connection: socket.socket, ordinal: int, request: bytes) -> None:
    """One token per word, and a chat template of 7 tokens."""
    asked = body_of(request)
    extra = 7 if "messages" in asked else 0
    messages = asked.get("messages")
    text = messages[0]["content"] if isinstance(messages, list) else str(asked["prompt"])
    tokens = [900 + len(word) for word in text.split()] + [1] * extra
    content = orjson.dumps({"count": len(tokens), "tokens": tokens, "max_model_len": 512})
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))


def test_a_vllm_server_gets_token_ids_of_exact_length(serve: Callable[[Answer], FaultyServer]) -> None:
    server = serve(lambda connection, ordinal: vllm_tokenizer(connection, ordinal, server.requests[ordinal]))
    work = prepare(Target(url=server.url, model="m", tokenizer="vllm"), PLAN)
    assert work.lengths == "token-ids"
    for exchange in work.measured:
        prompt = body_of(exchange.payload)["prompt"]
        assert isinstance(prompt, list) and len(prompt) == exchange.input_planned
        assert all(900 < token < 930 for token in prompt)
    assert body_of(work.measured[0].payload)["stream_options"] == {
        "include_usage": True,
        "continuous_usage_stats": True,
    }


def test_a_chat_message_leaves_room_for_the_template(serve: Callable[[Answer], FaultyServer]) -> None:
    server = serve(lambda connection, ordinal: vllm_tokenizer(connection, ordinal, server.requests[ordinal]))
    plan = PLAN.model_copy(update={"endpoint": "chat", "isl": 20})
    work = prepare(Target(url=server.url, model="m", tokenizer="vllm"), plan)
    assert work.lengths == "server-tokenizer"
    for exchange in work.measured:
        (message,) = body_of(exchange.payload)["messages"]  # type: ignore[misc]
        assert len(message["content"].split()) + 7 == exchange.input_planned


def test_a_prompt_shorter_than_the_chat_template_is_refused(serve: Callable[[Answer], FaultyServer]) -> None:
    server = serve(lambda connection, ordinal: vllm_tokenizer(connection, ordinal, server.requests[ordinal]))
    plan = PLAN.model_copy(update={"endpoint": "chat", "isl": 7, "range_ratio": 1.0})
    with pytest.raises(LaunchError, match="the chat template alone takes 7 tokens"):
        prepare(Target(url=server.url, model="m", tokenizer="vllm"), plan)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"]
)
def test_a_server_without_the_tokenizer_endpoint_is_told(
    serve: Callable[[Answer], FaultyServer], answer: bytes
) -> None:
    server = serve(lambda connection, ordinal: connection.sendall(answer))
    with pytest.raises(LaunchError, match="/tokenize: the server's tokenizer failed"):
        prepare(Target(url=server.url, model="m", tokenizer="llamacpp"), PLAN)
