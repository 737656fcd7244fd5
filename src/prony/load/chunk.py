"""What one event of an OpenAI-style stream carries."""

from typing import Any, NamedTuple

import orjson

from prony.measure.eventlog import Kind

_DONE = b"[DONE]"
_MOST_TOKENS = 1 << 31
"""No answer has as many: a count from here on is no count."""


class ChunkError(Exception):
    """The payload is not a chunk of a completions or chat stream."""


class Usage(NamedTuple):
    """Tokens as the server counted them; -1: it did not say."""

    prompt: int = -1
    completion: int = -1
    cached: int = -1


UNSTATED = Usage()


class Chunk(NamedTuple):
    """One event: its kind, the usage it states, whether it ends the generation, the server's error text, its text."""

    kind: Kind
    usage: Usage | None = None
    finished: bool = False
    has_choice: bool = False
    error: str = ""
    text: str = ""


def parse_chunk(data: bytes) -> Chunk:
    """Read one event's data. Raises ChunkError."""
    if data.strip() == _DONE:
        return Chunk(Kind.DONE)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ChunkError(f"invalid JSON in the stream ({error}): {data[:80]!r}") from None
    if not isinstance(value, dict):
        raise ChunkError(f"a JSON object was expected: {data[:80]!r}")
    if value.get("error"):
        return Chunk(Kind.ERROR, error=_error_text(value["error"]))
    choices = value.get("choices", [])
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise ChunkError(f"'choices' is not a list of objects: {data[:80]!r}")
    usage = _usage(value.get("usage"))
    if not choices and usage is None and "choices" not in value:
        raise ChunkError(f"neither choices nor usage nor error: {data[:80]!r}")
    kind, text = _kind(choices[0]) if choices else (None, "")
    finished = any(choice.get("finish_reason") is not None for choice in choices)
    # A choice that says nothing yet is the role's, also of a server that states usage as it goes.
    silent = Kind.USAGE if usage and (finished or not choices) else Kind.ROLE
    return Chunk(kind or silent, usage, finished, bool(choices), text=text)


def error_text(body: bytes) -> str | None:
    """Return the message of a body that is one JSON error object, else None."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return _error_text(value["error"]) if isinstance(value, dict) and value.get("error") else None


def _kind(choice: dict[str, Any]) -> tuple[Kind | None, str]:
    """Return what a choice carries, and its text: of a stream in `delta` or `text`, of a whole answer in `message`."""
    delta = choice.get("delta", choice.get("message"))
    delta = delta if isinstance(delta, dict) else {}
    content = choice.get("text") or delta.get("content")
    if content:
        return Kind.CONTENT, content if isinstance(content, str) else ""
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    if reasoning:
        return Kind.REASONING, reasoning if isinstance(reasoning, str) else ""
    return (Kind.TOOL if delta.get("tool_calls") else None), ""


def _error_text(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message if message is not None else error)[:200]


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(_count(value.get("prompt_tokens")), _count(value.get("completion_tokens")), _count(cached))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < _MOST_TOKENS else -1
