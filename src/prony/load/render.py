"""Requests as bytes, rendered before the clock starts."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from prony.load.address import split_url
from prony.load.auth import auth_headers
from prony.load.prompts import Prompt
from prony.load.request import Target
from prony.spec.load import LoadPlan
from prony.spec.workload import MultiTurn, RandomTokens, Workload

_PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
Message = Mapping[str, Any]


class Renderer:
    """Renders the requests of one load. Raises LaunchError for an API key that is not there."""

    def __init__(self, target: Target, plan: LoadPlan) -> None:
        parts = split_url(target.url)
        fixed = "".join(f"{name}: {value}\r\n" for name, value in auth_headers(target).items())
        host = parts.netloc.rpartition("@")[2]
        kind = "text/event-stream" if plan.stream else "application/json"
        self._target = target
        self._plan = plan
        self._forget = target.tokenizer == "llamacpp" and not _repeats(plan.workload)
        self._prefix = parts.path.rstrip("/")
        self._head = (
            f"HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: {kind}\r\n"
            f"Accept-Encoding: identity\r\nUser-Agent: prony\r\n{fixed}"
        )
        self._run = f"prony-{os.getpid()}-{os.urandom(4).hex()}"

    def prompt(self, mark: str, prompt: Prompt, output_tokens: int) -> bytes:
        """Return a request for one prompt; mark: what ends its id, which is unique in the load."""
        asked: dict[str, Any]
        if self._plan.endpoint == "completions":
            asked = {"prompt": prompt}
        else:
            asked = {"messages": [{"role": "user", "content": prompt}]}
        return self._render(mark, self._plan.endpoint, {**asked, **self._exactly(output_tokens)})

    def messages(self, mark: str, messages: Sequence[Message], output_tokens: int) -> bytes:
        """Return a chat request for the whole of a conversation so far."""
        return self._render(mark, "chat", {"messages": list(messages), **self._exactly(output_tokens)})

    def recorded(self, mark: str, body: Mapping[str, Any]) -> bytes:
        """Return a request that a log holds: as it was, for this model, and streamed as the plan says."""
        kept = {name: value for name, value in body.items() if name not in ("model", "stream", "stream_options")}
        return self._render(mark, "chat" if "messages" in body else "completions", kept)

    def _exactly(self, output_tokens: int) -> dict[str, Any]:
        exactly = {"max_tokens": output_tokens, "min_tokens": output_tokens, "ignore_eos": True, "temperature": 0}
        return {**exactly, "cache_prompt": False} if self._forget else exactly

    def _render(self, mark: str, endpoint: str, asked: Mapping[str, Any]) -> bytes:
        body: dict[str, Any] = {"model": self._target.model, **asked, "stream": self._plan.stream}
        if self._plan.stream:
            body["stream_options"] = {"include_usage": True}
            if self._target.tokenizer == "vllm":
                body["stream_options"]["continuous_usage_stats"] = True
        content = orjson.dumps(body)
        head = f"POST {self._prefix}{_PATHS[endpoint]} {self._head}"
        return f"{head}X-Request-Id: {self._run}-{mark}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def _repeats(workload: Workload) -> bool:
    """Requests repeat what others said, so that a server's prefix cache is part of what is measured."""
    return isinstance(workload, MultiTurn) or (isinstance(workload, RandomTokens) and workload.prefix is not None)
