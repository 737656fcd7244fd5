"""Prompts of exact length, all different, and the requests that carry them, drawn from the plan's seed."""

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from prony.base.errors import LaunchError
from prony.load.address import split_url
from prony.load.exchange import Exchange
from prony.load.request import Target
from prony.load.tokenizer import ServerTokenizer
from prony.load.words import WORDS
from prony.spec.load import LoadPlan

Lengths = Literal["token-ids", "server-tokenizer", "approximate"]
Prompt = str | list[int]
Draw = Callable[[int, np.random.Generator], Prompt]

_REDRAWS = 100
_PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}


class Workload(NamedTuple):
    """Requests ready to send: warm-ups, whose prompts no measured request has, and the measured ones."""

    warmups: list[Exchange]
    measured: list[Exchange]
    lengths: Lengths


def draw_lengths(limit: int, ratio: float, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw lengths in tokens, uniform over the integers of [int(ratio * limit), limit], at least 1."""
    return rng.integers(max(1, int(ratio * limit)), limit + 1, size=count, dtype=np.int64)


def build_workload(target: Target, plan: LoadPlan) -> Workload:
    """Render every request of a plan to bytes. Asks the server's tokenizer; raises LaunchError when that fails."""
    headers = auth_headers(target)
    draw, lengths = _drawer(target, plan, headers)
    render = _renderer(target, plan, headers)
    rng = np.random.default_rng(plan.seed)
    seen: set[bytes] = set()
    run = f"prony-{os.getpid()}-{os.urandom(4).hex()}"

    def exchanges(count: int, mark: str) -> list[Exchange]:
        inputs = draw_lengths(plan.isl, plan.range_ratio, count, rng).tolist()
        outputs = draw_lengths(plan.osl, plan.range_ratio, count, rng).tolist()
        prompts = (_draw_new(draw, length, rng, seen) for length in inputs)
        return [
            Exchange(index, render(f"{run}-{mark}{index}", prompt, osl), isl, osl)
            for index, (prompt, isl, osl) in enumerate(zip(prompts, inputs, outputs, strict=True))
        ]

    measured = exchanges(plan.requests, "")
    return Workload(warmups=exchanges(plan.warmups, "w"), measured=measured, lengths=lengths)


def auth_headers(target: Target) -> dict[str, str]:
    """Return the Authorization header, the key read from the environment. Raises LaunchError when it is not set."""
    if target.api_key_env is None:
        return {}
    key = os.environ.get(target.api_key_env, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise LaunchError(
            f"the environment variable {target.api_key_env} holds no API key", fix=f"export {target.api_key_env}=…"
        )
    return {"Authorization": f"Bearer {key}"}


def _draw_new(draw: Draw, length: int, rng: np.random.Generator, seen: set[bytes]) -> Prompt:
    for _ in range(_REDRAWS):
        prompt = draw(length, rng)
        key = hashlib.blake2b(orjson.dumps(prompt), digest_size=16).digest()
        if key not in seen:
            seen.add(key)
            return prompt
    raise LaunchError(
        f"no further prompt of {length} tokens differs from the {len(seen)} drawn",
        fix="raise isl or lower the number of requests",
    )


def _drawer(target: Target, plan: LoadPlan, headers: dict[str, str]) -> tuple[Draw, Lengths]:
    if target.tokenizer == "none":
        return _draw_words, "approximate"
    tokenizer = ServerTokenizer(target, headers)
    try:
        if plan.endpoint == "chat":
            return _chat_drawer(tokenizer, plan), "server-tokenizer"
        return _id_drawer(tokenizer), "token-ids"
    finally:
        tokenizer.close()


def _draw_words(length: int, rng: np.random.Generator) -> str:
    return " ".join(WORDS[i] for i in rng.integers(len(WORDS), size=length))


def _id_drawer(tokenizer: ServerTokenizer) -> Draw:
    """Draw from the ids of ordinary words: no control tokens, no half characters."""
    vocabulary = np.unique(np.asarray(tokenizer.ids(" " + " ".join(WORDS)), dtype=np.int64))
    if len(vocabulary) < 2:
        raise LaunchError("the server's tokenizer gave fewer than 2 ids for 200 words", fix="check the model's files")

    def draw(length: int, rng: np.random.Generator) -> list[int]:
        ids: list[int] = vocabulary[rng.integers(len(vocabulary), size=length)].tolist()
        return ids

    return draw


def _chat_drawer(tokenizer: ServerTokenizer, plan: LoadPlan) -> Draw:
    """Draw messages of words, of the asked length with the chat template included (the server says what that adds)."""
    costs = _word_costs(tokenizer)
    plain = [word for word, cost in zip(WORDS, costs, strict=True) if cost == 1]
    if len(plain) < 16:
        raise LaunchError(
            "too few words are one token each in this vocabulary to build chat prompts of exact length",
            fix="use endpoint: completions, whose prompts are token ids",
        )
    probe = " ".join(["", *plain])
    overhead = tokenizer.chat_length(probe) - len(plain)
    shortest = max(1, int(plan.range_ratio * plan.isl))
    if shortest <= overhead:
        raise LaunchError(
            f"the chat template alone takes {overhead} tokens, prompts of {shortest} are asked",
            fix=f"raise isl so that range_ratio * isl is above {overhead}, or use endpoint: completions",
        )

    def draw(length: int, rng: np.random.Generator) -> str:
        return "".join(" " + plain[i] for i in rng.integers(len(plain), size=length - overhead))

    return draw


def _word_costs(tokenizer: ServerTokenizer) -> Sequence[int]:
    if len(tokenizer.ids(" " + " ".join(WORDS))) == len(WORDS):
        return [1] * len(WORDS)
    return [len(tokenizer.ids(" " + word)) for word in WORDS]


def _renderer(target: Target, plan: LoadPlan, headers: dict[str, str]) -> Callable[[str, Prompt, int], bytes]:
    parts = split_url(target.url)
    fixed = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = (
        f"POST {parts.path.rstrip('/')}{_PATHS[plan.endpoint]} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
        "Content-Type: application/json\r\nAccept: text/event-stream\r\nAccept-Encoding: identity\r\n"
        f"User-Agent: prony\r\n{fixed}"
    )

    def render(request_id: str, prompt: Prompt, output_tokens: int) -> bytes:
        body = orjson.dumps(_body(target, plan, prompt, output_tokens))
        return f"{head}X-Request-Id: {request_id}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    return render


def _body(target: Target, plan: LoadPlan, prompt: Prompt, output_tokens: int) -> dict[str, Any]:
    asked = (
        {"prompt": prompt} if plan.endpoint == "completions" else {"messages": [{"role": "user", "content": prompt}]}
    )
    body: dict[str, Any] = {
        "model": target.model,
        **asked,
        "max_tokens": output_tokens,
        "min_tokens": output_tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if target.tokenizer == "llamacpp":
        body["cache_prompt"] = False
    if target.tokenizer == "vllm":
        body["stream_options"]["continuous_usage_stats"] = True
    return body
