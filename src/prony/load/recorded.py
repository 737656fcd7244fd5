"""Requests of a file made ready: what they ask, and how long they are where anyone can say."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from prony.load.datasets import questions, read_dataset, requests
from prony.load.exchange import Exchange
from prony.load.prompts import Exactness
from prony.load.render import Renderer
from prony.load.request import Target
from prony.load.tokenizer import ServerTokenizer
from prony.measure.eventlog import NEVER
from prony.spec.arrival import TimedArrivals
from prony.spec.load import LoadPlan
from prony.spec.workload import FileWorkload

_CHARACTERS_PER_TOKEN = 4
"""Of English text, where no tokenizer can be asked; such lengths are called approximate."""


@dataclass(frozen=True)
class Replay:
    """Requests of a file, the measured before the warm-ups. times_s: ascending, of the measured ones, where needed."""

    measured: list[Exchange]
    warmups: list[Exchange]
    lengths: Exactness
    times_s: list[float] | None


def replay(target: Target, plan: LoadPlan, asked: FileWorkload) -> Replay:
    """Render the requests of a file. Asks the server's tokenizer, if any: raises LaunchError when that fails.

    Raises ConfigError for a file that does not hold what is asked.
    """
    raw, count = read_dataset(asked), plan.requests + plan.warmups
    renderer = Renderer(target, plan)
    marks = [*map(str, range(plan.requests)), *(f"w{number}" for number in range(plan.warmups))]
    bodies: list[Mapping[str, Any]]
    times_s = None
    if asked.kind == "sharegpt":
        found = questions(raw, asked.file, count)
        bodies = [_body_of(plan, one.prompt) for one in found]
        outputs = _answer_lengths(target, [one.answer for one in found])
        rendered = zip(marks, found, outputs, strict=True)
        payloads = [renderer.prompt(mark, one.prompt, output) for mark, one, output in rendered]
    else:
        rows = requests(raw, asked.file, count, timed=isinstance(plan.arrival, TimedArrivals))
        bodies = [row.body for row in rows]
        outputs = [NEVER if row.output_tokens is None else row.output_tokens for row in rows]
        payloads = [renderer.recorded(mark, body) for mark, body in zip(marks, bodies, strict=True)]
        if isinstance(plan.arrival, TimedArrivals):
            times_s = [row.at_s for row in rows[: plan.requests] if row.at_s is not None]
    inputs, lengths = _input_lengths(target, bodies)
    made = [
        Exchange(number if number < plan.requests else number - plan.requests, payload, isl, osl)
        for number, (payload, isl, osl) in enumerate(zip(payloads, inputs, outputs, strict=True))
    ]
    return Replay(made[: plan.requests], made[plan.requests :], lengths, times_s)


def _body_of(plan: LoadPlan, prompt: str) -> dict[str, Any]:
    if plan.endpoint == "chat":
        return {"messages": [{"role": "user", "content": prompt}]}
    return {"prompt": prompt}


def _can_count(target: Target) -> bool:
    return target.tokenizer in ("llamacpp", "vllm")


def _answer_lengths(target: Target, texts: Sequence[str]) -> list[int]:
    """Return lengths in tokens: by the server's tokenizer, else estimated from the characters."""
    if not _can_count(target):
        return [max(1, len(text) // _CHARACTERS_PER_TOKEN) for text in texts]
    with closing(ServerTokenizer(target)) as tokenizer:
        return [max(1, len(tokenizer.ids(text))) for text in texts]


def _input_lengths(target: Target, bodies: Sequence[Mapping[str, Any]]) -> tuple[list[int], Exactness]:
    """Return input lengths, NEVER where nobody knows before the server counts, and how they came about."""
    if not _can_count(target):
        lengths = [len(body["prompt"]) if isinstance(body.get("prompt"), list) else NEVER for body in bodies]
        return lengths, "approximate" if NEVER in lengths else "token-ids"
    with closing(ServerTokenizer(target)) as tokenizer:
        lengths = [_input_length(tokenizer, body) for body in bodies]
    return lengths, "approximate" if NEVER in lengths else "server-tokenizer"


def _input_length(tokenizer: ServerTokenizer, body: Mapping[str, Any]) -> int:
    prompt = body.get("prompt")
    if isinstance(prompt, list):
        return len(prompt)
    if isinstance(prompt, str):
        return tokenizer.prompt_length(prompt)
    messages = body["messages"]
    if body.get("tools") or not all(isinstance(one.get("content"), str) for one in messages):
        return NEVER  # images, tools and calls of them: the template does with them what it likes
    return tokenizer.chat_length(messages)
