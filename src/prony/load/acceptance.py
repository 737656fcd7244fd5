"""One cell of an acceptance curve, measured on a running engine: one request at a time, counters read between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from prony.base.errors import ConfigError, LaunchError, MeasurementError
from prony.facts.curves import Cell, Thinking
from prony.load.ask import ask
from prony.load.engine import Counters, read_counters
from prony.load.request import Target

FEWEST_PROMPTS = 2
RESAMPLES = 4000
_TIMEOUT_S = 3600.0
_KINDS = ("prompt", "messages")


@dataclass(frozen=True)
class Collection:
    """What is asked of an engine. steps: tokens that it drafts in a row; output_tokens: of each prompt, at most."""

    url: str
    model: str
    steps: int
    thinking: Thinking
    output_tokens: int
    seed: int = 0


@dataclass(frozen=True)
class _Counted:
    """Of one prompt: verification steps and accepted tokens at each position."""

    drafts: int
    accepted_at: tuple[int, ...]


def collect_cell(asked: Collection, prompts: Path, show: Callable[[int, int], None]) -> Cell:
    """Ask every prompt and return the counts with a 95 % interval by bootstrap over prompts.

    Prompts are asked as a user asks: answers may end early. Raises ConfigError for the file, LaunchError when the
    engine does not answer, MeasurementError when it tells no drafts or drafts otherwise than said.
    """
    bodies = read_prompts(prompts)
    target = Target(url=asked.url, model=asked.model)
    before = _counters(asked.url)
    counted = []
    for number, body in enumerate(bodies, 1):
        _ask(target, asked, body)
        after = _counters(asked.url)
        counted.append(_between(before, after, asked.steps))
        before = after
        show(number, len(bodies))
    return cell_of(counted, asked)


def read_prompts(path: Path) -> tuple[dict[str, Any], ...]:
    """Read JSON lines, each with `prompt` or `messages`. Raises ConfigError with file:line."""
    allowed = 'JSON lines: {"prompt": "…"} or {"messages": […]}'
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", fix="check the path") from None
    bodies = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            body = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"{path}:{number}: no JSON: {error}", allowed=allowed) from None
        if not isinstance(body, dict) or not any(body.get(kind) for kind in _KINDS):
            raise ConfigError(f"{path}:{number}: neither prompt nor messages", allowed=allowed)
        bodies.append(body)
    if len(bodies) < FEWEST_PROMPTS:
        raise ConfigError(f"{path}: {len(bodies)} prompts", allowed=f"at least {FEWEST_PROMPTS}; 80 give about ± 2 %")
    return tuple(bodies)


def _ask(target: Target, asked: Collection, body: dict[str, Any]) -> None:
    path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
    whole = {"max_tokens": asked.output_tokens, **body, "model": target.model, "stream": False}
    status, told = ask(target, "POST", path, whole, _TIMEOUT_S)
    if status != 200:
        reason = told.get("error", told) if isinstance(told, dict) else told
        raise LaunchError(f"{target.url}{path}: answered {status}: {str(reason)[:300]}", fix="read the engine's log")


def _counters(url: str) -> Counters:
    found = read_counters([url])
    if found is None or found.drafts is None or found.accepted is None:
        raise MeasurementError(
            f"{url}/metrics tells nothing of drafts",
            fix="serve with speculative decoding and metrics on; vLLM and llama.cpp count drafts",
        )
    return found


def _between(before: Counters, after: Counters, steps: int) -> _Counted:
    """Return what one prompt added. Raises MeasurementError when the positions are not those of the draft length."""
    at, was = after.accepted_at or {}, before.accepted_at or {}
    grown = [round(at[position] - was.get(position, 0.0)) for position in sorted(at)]
    while len(grown) > steps and not grown[-1]:
        grown.pop()
    if len(grown) > steps or any(value < 0 for value in grown):
        raise MeasurementError(
            f"tokens were accepted at position {len(grown)} of a draft, {steps} are drafted in a row",
            fix="say with --steps how many tokens the engine drafts; let nobody else use it meanwhile",
        )
    drafts = round((after.drafts or 0) - (before.drafts or 0))
    return _Counted(drafts, tuple(grown + [0] * (steps - len(grown))))


def cell_of(counted: Sequence[_Counted], asked: Collection) -> Cell:
    """Sum the counts of prompts and give the length's interval: prompts are resampled whole, drafts depend on them."""
    drafts = np.array([one.drafts for one in counted], dtype=float)
    if not drafts.sum():
        raise MeasurementError("no draft was verified", fix="check that speculative decoding is on at concurrency 1")
    at = np.array([one.accepted_at for one in counted], dtype=float)
    chosen = np.random.default_rng(asked.seed).integers(0, len(counted), (RESAMPLES, len(counted)))
    sampled = drafts[chosen].sum(axis=1)
    lengths = 1 + at.sum(axis=1)[chosen].sum(axis=1)[sampled > 0] / sampled[sampled > 0]
    low, high = np.percentile(lengths, (2.5, 97.5))
    return Cell(
        thinking=asked.thinking,
        steps=asked.steps,
        drafts=int(drafts.sum()),
        accepted_at=tuple(int(total) for total in at.sum(axis=0)),
        prompts=len(counted),
        ci95=(round(float(low), 4), round(float(high), 4)),
    )
