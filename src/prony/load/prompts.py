"""Prompts of exact length, all different: token ids, or text for a chat template."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from prony.base.errors import LaunchError
from prony.load.request import Target
from prony.load.words import WORDS
from prony.spec.workload import SharedPrefix

if TYPE_CHECKING:
    from prony.load.tokenizer import ServerTokenizer

Exactness = Literal["token-ids", "server-tokenizer", "approximate"]
Prompt = str | list[int]
Draw = Callable[[int, np.random.Generator], Prompt]

_REDRAWS = 100
_USUAL_IDS = (1000, 8000)
"""Ids that are ordinary pieces of text in every usual vocabulary: behind control and byte tokens, below 32k."""


class Prompter:
    """Draws prompts for one target and endpoint. exactness: how their lengths come about."""

    def __init__(self, draw: Draw, exactness: Exactness, overhead: int = 0) -> None:
        self.exactness = exactness
        self._draw = draw
        self._overhead = overhead
        self._seen: set[bytes] = set()
        self._prefixes: list[Prompt] = []
        self._group: Callable[[np.random.Generator], int] | None = None

    def share_prefixes(self, prefix: SharedPrefix, rng: np.random.Generator) -> None:
        """Let all prompts from now on begin with one of some fixed prefixes."""
        weights = np.arange(1, prefix.groups + 1, dtype=np.float64) ** -prefix.zipf
        cumulative = np.cumsum(weights / weights.sum())
        self._prefixes = [self._piece(prefix.length, rng) for _ in range(prefix.groups)]
        last = prefix.groups - 1  # rounding may leave the sum just below 1
        self._group = lambda draw: min(int(np.searchsorted(cumulative, draw.random())), last)

    def new(self, length: int, rng: np.random.Generator) -> Prompt:
        """Return a prompt of `length` tokens, chat template included, that was not drawn before. Raises LaunchError."""
        prefix = self._prefixes[self._group(rng)] if self._group is not None else None
        shared = 0 if prefix is None else _tokens(prefix)
        for _ in range(_REDRAWS):
            prompt = self._piece(length - self._overhead - shared, rng)
            if prefix is not None:
                prompt = prefix + prompt  # type: ignore[operator]
            key = hashlib.blake2b(orjson.dumps(prompt), digest_size=16).digest()
            if key not in self._seen:
                self._seen.add(key)
                return prompt
        raise LaunchError(
            f"no further prompt of {length} tokens differs from the {len(self._seen)} drawn",
            fix="raise isl or lower the number of requests",
        )

    def piece(self, length: int, rng: np.random.Generator) -> Prompt:
        """Return what a later turn of a conversation adds: `length` tokens, without a template of its own."""
        return self._piece(length, rng)

    def require(self, least: int, prefix: SharedPrefix | None) -> None:
        """Raise LaunchError when the shortest prompt that is asked has no room beside template and prefix."""
        needed = self._overhead + (prefix.length if prefix else 0)
        if least <= needed:
            parts = [f"the chat template alone takes {self._overhead} tokens"] if self._overhead else []
            parts += [f"the shared prefix takes {prefix.length}"] if prefix else []
            raise LaunchError(
                f"{' and '.join(parts) or 'a prompt has at least 1 token'}, prompts of {least} are asked",
                fix=f"raise the shortest prompt (range_ratio * isl, or `least` of the input lengths) above {needed}"
                + (", or use endpoint: completions" if self._overhead else ""),
            )

    def _piece(self, length: int, rng: np.random.Generator) -> Prompt:
        return self._draw(length, rng)


def _tokens(prompt: Prompt) -> int:
    return len(prompt) if isinstance(prompt, list) else len(prompt.split())


def make_prompter(target: Target, endpoint: str) -> Prompter:
    """Return what draws prompts for a target. Asks the server's tokenizer; raises LaunchError when that fails."""
    if target.tokenizer == "none" or (target.tokenizer == "ids" and endpoint == "chat"):
        return Prompter(_draw_words, "approximate")
    if target.tokenizer == "ids":
        return Prompter(_drawer_of(np.arange(*_USUAL_IDS)), "token-ids")
    from prony.load.tokenizer import ServerTokenizer

    tokenizer = ServerTokenizer(target)
    try:
        return _chat(tokenizer) if endpoint == "chat" else Prompter(_id_drawer(tokenizer), "token-ids")
    finally:
        tokenizer.close()


def _draw_words(length: int, rng: np.random.Generator) -> str:
    return "".join(" " + WORDS[i] for i in rng.integers(len(WORDS), size=length))


def _drawer_of(vocabulary: NDArray[np.int64]) -> Draw:
    def draw(length: int, rng: np.random.Generator) -> list[int]:
        ids: list[int] = vocabulary[rng.integers(len(vocabulary), size=length)].tolist()
        return ids

    return draw


def _id_drawer(tokenizer: "ServerTokenizer") -> Draw:
    """Draw from the ids of ordinary words: no control tokens, no half characters."""
    vocabulary = np.unique(np.asarray(tokenizer.ids(" " + " ".join(WORDS)), dtype=np.int64))
    if len(vocabulary) < 2:
        raise LaunchError("the server's tokenizer gave fewer than 2 ids for 200 words", fix="check the model's files")
    return _drawer_of(vocabulary)


def _chat(tokenizer: "ServerTokenizer") -> Prompter:
    """Draw messages of words, of the asked length with the chat template included (the server says what that adds)."""
    costs = _word_costs(tokenizer)
    plain = [word for word, cost in zip(WORDS, costs, strict=True) if cost == 1]
    if len(plain) < 16:
        raise LaunchError(
            "too few words are one token each in this vocabulary to build chat prompts of exact length",
            fix="use endpoint: completions, whose prompts are token ids",
        )
    overhead = tokenizer.chat_length([{"role": "user", "content": " ".join(["", *plain])}]) - len(plain)

    def draw(length: int, rng: np.random.Generator) -> str:
        return "".join(" " + plain[i] for i in rng.integers(len(plain), size=length))

    return Prompter(draw, "server-tokenizer", overhead)


def _word_costs(tokenizer: "ServerTokenizer") -> Sequence[int]:
    if len(tokenizer.ids(" " + " ".join(WORDS))) == len(WORDS):
        return [1] * len(WORDS)
    return [len(tokenizer.ids(" " + word)) for word in WORDS]
