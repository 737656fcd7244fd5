"""Requests that a file holds, with every fault named by its line."""

import codecs
import hashlib
import io
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from prony.base.errors import ConfigError
from prony.spec.workload import FileWorkload

_SHAREGPT = 'a JSON list of {"conversations": [{"from": "human", "value": …}, {"from": "gpt", "value": …}]}'
_LOG = 'JSON lines: OpenAI request bodies, or {"body": …, "timestamp": seconds}'
_HUMAN, _MODEL = ("human", "user"), ("gpt", "assistant", "chatgpt", "bing", "bard")


class Recorded(NamedTuple):
    """A request of a log: its body, its answer's length in tokens (None: it may end early), when it was made, in s."""

    body: Mapping[str, Any]
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
    _require_text(raw, file, _SHAREGPT)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _fault(f"{file}:{error.lineno}", f"not JSON: {error.msg}", _SHAREGPT) from None
    if not isinstance(value, list):
        raise _fault(f"{file}:1", "holds no list", _SHAREGPT)
    found = []
    for number, entry in enumerate(value):
        question = _question(entry)
        if isinstance(question, str):
            place = f"{file}:{_line_of_entry(raw, number)}"
            raise _fault(place, f"entry {number + 1}: {question}", _SHAREGPT)
        if question is not None:
            found.append(question)
        if len(found) == count:
            return found
    raise _too_few(len(found), count, file, "conversations that begin with a question and its answer")


def _question(entry: Any) -> Question | str | None:
    """Return an entry's first exchange, None where it begins otherwise, and why where it is no entry."""
    turns = entry.get("conversations", entry.get("conversation")) if isinstance(entry, dict) else None
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns[:2]):
        return "no list 'conversations' of turns"
    if any(not {"from", "value"} <= turn.keys() for turn in turns[:2]):
        return "a turn has no 'from' or no 'value'"
    said = [(turn["from"], turn["value"]) for turn in turns[:2]]
    if len(said) < 2 or said[0][0] not in _HUMAN or said[1][0] not in _MODEL:
        return None
    prompt, answer = said[0][1], said[1][1]
    if not isinstance(prompt, str) or not isinstance(answer, str):
        return "'value' is no text"
    return Question(prompt, answer) if prompt.strip() and answer.strip() else None


def _line_of_entry(raw: bytes, number: int) -> int:
    """Return the line on which an entry of a JSON list begins. The list is known to be valid."""
    text, decoder = raw.decode("utf-8-sig"), json.JSONDecoder()
    position = text.index("[") + 1
    for left in range(number, -1, -1):
        while text[position] in " \t\r\n,":
            position += 1
        if left:
            _, position = decoder.raw_decode(text, position)
    return text.count("\n", 0, position) + 1


def requests(raw: bytes, file: str, count: int, *, timed: bool) -> list[Recorded]:
    """Return `count` requests of a log: the first ones in the file, or in time where their times are used.

    A log may be written in the order of ends. Raises ConfigError with file:line, and when there are too few.
    """
    _require_text(raw, file, _LOG)
    if timed:
        rows = sorted(_lines(raw, file, timed=True), key=_made_at)
    else:
        rows = list(itertools.islice(_lines(raw, file, timed=False), count))
    if len(rows) < count:
        raise _too_few(len(rows), count, file, "requests")
    return rows[:count]


def _made_at(row: Recorded) -> float:
    assert row.at_s is not None
    return row.at_s


def _lines(raw: bytes, file: str, *, timed: bool) -> Iterator[Recorded]:
    for number, line in enumerate(io.BytesIO(raw.removeprefix(codecs.BOM_UTF8)), 1):
        if line.strip():
            recorded = _recorded(line, f"{file}:{number}")
            if timed and recorded.at_s is None:
                raise _fault(f"{file}:{number}", "no 'timestamp', which arrival 'timed' needs of every line", _LOG)
            yield recorded


def _recorded(line: bytes, place: str) -> Recorded:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _fault(place, f"not JSON: {error.msg}", _LOG) from None
    body = value.get("body", value) if isinstance(value, dict) else None
    if not isinstance(body, dict) or ("messages" in body) == ("prompt" in body):
        raise _fault(place, "no request: it needs 'messages' or 'prompt', one of the two", _LOG)
    if (reason := _not_one_answer(body)) is not None:
        raise _fault(place, reason, _LOG)
    at_s = value.get("timestamp")
    if at_s is not None and (isinstance(at_s, bool) or not isinstance(at_s, int | float)):
        raise _fault(place, f"'timestamp' is no number of seconds: {at_s!r}", _LOG)
    kept = {name: item for name, item in body.items() if name != "timestamp"}
    return Recorded(kept, _output_tokens(body, place), None if at_s is None else float(at_s))


def _not_one_answer(body: Mapping[str, Any]) -> str | None:
    """Say why a body does not ask one question that gets one answer, None when it does."""
    messages, prompt = body.get("messages"), body.get("prompt")
    if "messages" in body:
        if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
            return "'messages' is no list of messages"
    elif not isinstance(prompt, str) and not (prompt and isinstance(prompt, list) and _all_ids(prompt)):
        return "'prompt' is neither text nor token ids (several prompts: one line for each)"
    if any(body.get(name) not in (None, 1) for name in ("n", "best_of")):
        return "asks for several answers, which have no one TTFT"
    return None


def _all_ids(prompt: list[Any]) -> bool:
    return all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in prompt)


def _output_tokens(body: Mapping[str, Any], place: str) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        tokens = body.get(name)
        if tokens is None:
            continue
        if isinstance(tokens, bool) or not isinstance(tokens, int) or not 1 <= tokens < 1 << 31:
            raise _fault(place, f"'{name}' is no whole number from 1 to {(1 << 31) - 1}: {tokens!r}", _LOG)
        exactly = body.get("ignore_eos") is True or body.get("min_tokens") == tokens
        return tokens if exactly else None
    return None


def _require_text(raw: bytes, file: str, allowed: str) -> None:
    if not raw.strip():
        raise _fault(f"{file}:1", "the file is empty", allowed)
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _fault(f"{file}:{line}", "not UTF-8", allowed) from None


def _fault(place: str, reason: str, allowed: str) -> ConfigError:
    return ConfigError(f"{place}: {reason}", allowed=allowed, fix=f"mend {place}, or choose another file")


def _too_few(have: int, wanted: int, file: str, what: str) -> ConfigError:
    return ConfigError(
        f"{file}: {wanted} requests are asked, warm-ups included; the file has {have} {what}",
        fix=f"ask for at most {have} requests and warm-ups" if have else "choose another file",
    )
