"""The shapes of OpenAI-compatible completions, as vLLM writes them: requests read, chunks and bodies written."""

import random
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from prony.sim.tokens import encode

_DEFAULT_MAX_TOKENS = 16
_TEMPLATE = (1, 2, 3, 4)  # what the chat template puts before each message: control bytes


class BadRequestError(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status

    def body(self) -> dict[str, Any]:
        """Return the error as OpenAI's API tells it."""
        kind = "NotFoundError" if self.status == 404 else "BadRequestError"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.status}}


@dataclass(frozen=True)
class Completion:
    """One completion that is asked for. Counts in tokens."""

    id: str
    chat: bool
    model: str
    created: int
    prompt_tokens: int
    output_tokens: int
    finish_reason: Literal["length", "stop"]
    stream: bool
    include_usage: bool
    continuous_usage: bool


def read_json(body: bytes) -> dict[str, Any]:
    """Return a JSON object. Raises BadRequestError."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequestError("the body must be a JSON object")
    return value


def read_completion(
    body: bytes, *, chat: bool, model: str, max_model_len: int, number: int, seed: int, created: int
) -> Completion:
    """Read a request for a completion; `number` counts requests. Raises BadRequestError.

    Without `ignore_eos` the output ends at a random length up to max_tokens, as a model's would.
    """
    asked = read_json(body)
    if asked.get("model", model) != model:
        raise BadRequestError(f"The model `{asked['model']}` does not exist.", 404)
    if asked.get("n", 1) != 1:
        raise BadRequestError("n must be 1")
    prompt_tokens = len(chat_ids(asked.get("messages")) if chat else prompt_ids(asked.get("prompt")))
    max_tokens = _max_tokens(asked, chat, max_model_len - prompt_tokens)
    if prompt_tokens + max_tokens > max_model_len:
        raise BadRequestError(
            f"maximum context length is {max_model_len} tokens, asked for {prompt_tokens} + {max_tokens}"
        )
    output = max_tokens
    if not asked.get("ignore_eos"):
        shortest = min(max_tokens, max(1, int(asked.get("min_tokens") or 1)))
        output = random.Random(seed * 1_000_003 + number).randint(shortest, max_tokens)
    options = asked.get("stream_options") or {}
    return Completion(
        id=f"{'chatcmpl' if chat else 'cmpl'}-{number}",
        chat=chat,
        model=model,
        created=created,
        prompt_tokens=prompt_tokens,
        output_tokens=output,
        finish_reason="length" if output == max_tokens else "stop",
        stream=bool(asked.get("stream")),
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
    )


def prompt_ids(prompt: Any) -> list[int]:
    """Return the ids of a prompt: text, token ids, or a list of one of these. Raises BadRequestError."""
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str) and prompt:
        return encode(prompt)
    if isinstance(prompt, list) and prompt and all(type(token) is int and token >= 0 for token in prompt):
        return prompt
    raise BadRequestError("prompt must be one text or one list of token ids, not empty")


def chat_ids(messages: Any) -> list[int]:
    """Return the ids of messages in their template. Raises BadRequestError."""
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise BadRequestError("messages must be a list of messages, not empty")
    return [token for message in messages for token in (*_TEMPLATE, *encode(_text_of(message.get("content"))))]


def _text_of(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    known = [text for text in texts if isinstance(text, str)]
    if len(known) != len(texts):
        raise BadRequestError("content must be text")
    return "".join(known)


def _max_tokens(asked: dict[str, Any], chat: bool, room: int) -> int:
    default = max(1, room) if chat else _DEFAULT_MAX_TOKENS
    value = asked.get("max_completion_tokens") or asked.get("max_tokens", default)
    if type(value) is not int or value < 1:
        raise BadRequestError(f"max_tokens must be at least 1, got {value}")
    return value


def role_event(completion: Completion) -> bytes:
    """Return the first event of a chat, which carries no token."""
    return _event(completion, _choice({"delta": {"role": "assistant", "content": ""}}), 0)


def text_event(completion: Completion, text: str, done: int, last: bool) -> bytes:
    """Return an event that carries text; `done` tokens have come with it."""
    content: dict[str, Any] = {"delta": {"content": text}} if completion.chat else {"text": text}
    return _event(completion, _choice(content, completion.finish_reason if last else None), done)


def closing_events(completion: Completion) -> bytes:
    """Return what ends a stream: usage where it was asked for, and [DONE]."""
    usage = _sse({**_envelope(completion), "choices": [], "usage": _usage(completion, completion.output_tokens)})
    return (usage if completion.include_usage else b"") + b"data: [DONE]\n\n"


def whole_body(completion: Completion, text: str) -> dict[str, Any]:
    """Return the body of a reply that isn't streamed."""
    content: dict[str, Any] = {"message": {"role": "assistant", "content": text}} if completion.chat else {"text": text}
    body = {**_envelope(completion), "choices": [_choice(content, completion.finish_reason)]}
    if completion.chat:
        body["object"] = "chat.completion"
    return {**body, "usage": _usage(completion, completion.output_tokens)}


def _choice(content: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, **content, "logprobs": None, "finish_reason": finish_reason}


def _event(completion: Completion, choice: dict[str, Any], done: int) -> bytes:
    usage = {"usage": _usage(completion, done)} if completion.continuous_usage else {}
    return _sse({**_envelope(completion), "choices": [choice], **usage})


def _envelope(completion: Completion) -> dict[str, Any]:
    kind = "chat.completion.chunk" if completion.chat else "text_completion"
    return {"id": completion.id, "object": kind, "created": completion.created, "model": completion.model}


def _usage(completion: Completion, done: int) -> dict[str, int]:
    prompt = completion.prompt_tokens
    return {"prompt_tokens": prompt, "total_tokens": prompt + done, "completion_tokens": done}


def _sse(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
