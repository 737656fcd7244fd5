"""Requests that a file holds, with every fault named by its line."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from prony.base.errors import ConfigError
from prony.spec.workload import FileWorkload

_SHAREGPT = 'a JSON list of {"conversations": [{"from": "human", "value": …}, {"from": "gpt", "value": …}]}'
_LOG = 'JSON lines: OpenAI request bodies, or {"body": …, "timestamp": seconds}'
_HUMAN, _MODEL = ("human", "user"), ("gpt", "assistant", "chatgpt", "bing", "bard")


class Recorded(NamedTuple):
    """A request of a log: its body, the tokens it asks for (None: it does not say), when it was made, in s."""

    body: dict[str, Any]
    output_tokens: int | None
    at_s: float | None


class Question(NamedTuple):
    """The first question of a conversation, and the answer it got."""

    prompt: str
    answer: str


def read_dataset(workload: FileWorkload) -> bytes:
    """Return the bytes of a workload's file. Raises ConfigError when it is missing or has changed since planning."""
    path = Path(workload.file)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", fix="check the path of the workload") from None
    found = hashlib.sha256(raw).hexdigest()
    if workload.sha256 and found != workload.sha256:
        raise ConfigError(
            f"{path}: has changed since this load was planned (sha256 {found[:12]}…, planned {workload.sha256[:12]}…)",
            fix="restore the file, or plan the load anew",
        )
    return raw


def questions(raw: bytes, file: str, count: int) -> list[Question]:
    """Return the first `count` conversations that begin with a question and an answer. Raises ConfigError."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{file}:{error.lineno}: not JSON: {error.msg}", allowed=_SHAREGPT) from None
    if not isinstance(value, list):
        raise ConfigError(f"{file}: holds no list", allowed=_SHAREGPT)
    found = [question for number, entry in enumerate(value) if (question := _question(entry, number, file))]
    _require_enough(len(found), count, file, "conversations that begin with a question and its answer")
    return found[:count]


def _question(entry: Any, number: int, file: str) -> Question | None:
    """Return an entry's first exchange, None where it begins otherwise. Raises ConfigError for what is no entry."""
    turns = entry.get("conversations", entry.get("conversation")) if isinstance(entry, dict) else None
    if not isinstance(turns, list):
        raise ConfigError(f"{file}: entry {number + 1} has no list 'conversations'", allowed=_SHAREGPT)
    said = [(turn.get("from"), turn.get("value")) for turn in turns[:2] if isinstance(turn, dict)]
    if len(said) < 2 or said[0][0] not in _HUMAN or said[1][0] not in _MODEL:
        return None
    prompt, answer = said[0][1], said[1][1]
    if not isinstance(prompt, str) or not isinstance(answer, str):
        raise ConfigError(f"{file}: entry {number + 1}: 'value' is no text", allowed=_SHAREGPT)
    return Question(prompt, answer) if prompt.strip() and answer.strip() else None


def requests(raw: bytes, file: str, count: int) -> list[Recorded]:
    """Return the first `count` requests of a log. Raises ConfigError with file:line."""
    found = list(_lines(raw, file))
    _require_enough(len(found), count, file, "requests")
    return found[:count]


def _lines(raw: bytes, file: str) -> Iterator[Recorded]:
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            yield _recorded(line, f"{file}:{number}")


def _recorded(line: bytes, place: str) -> Recorded:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{place}: not JSON: {error.msg}", allowed=_LOG) from None
    body = value.get("body", value) if isinstance(value, dict) else None
    if not isinstance(body, dict) or ("messages" in body) == ("prompt" in body):
        raise ConfigError(f"{place}: no request: it needs 'messages' or 'prompt', one of the two", allowed=_LOG)
    at_s = value.get("timestamp")
    if at_s is not None and (isinstance(at_s, bool) or not isinstance(at_s, int | float)):
        raise ConfigError(f"{place}: 'timestamp' is no number of seconds: {at_s!r}", allowed=_LOG)
    tokens = body.get("max_completion_tokens", body.get("max_tokens"))
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1):
        raise ConfigError(f"{place}: 'max_tokens' is no whole number from 1: {tokens!r}", allowed=_LOG)
    kept = {name: item for name, item in body.items() if name != "timestamp"}
    return Recorded(kept, tokens, None if at_s is None else float(at_s))


def _require_enough(have: int, wanted: int, file: str, what: str) -> None:
    if have < wanted:
        raise ConfigError(
            f"{file}: {wanted} requests are asked, the file has {have} {what}", fix=f"ask for at most {have} requests"
        )
