"""The server's own tokenizer, asked over its HTTP endpoints before the clock starts."""

import http.client
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from prony.base.errors import LaunchError
from prony.load.address import split_url
from prony.load.ask import connection_to
from prony.load.auth import auth_headers
from prony.load.request import Target

_TIMEOUT_S = 60.0


class ServerTokenizer:
    """Tokenises as the server does: `llamacpp` (/tokenize, /apply-template) or `vllm` (/tokenize). Close it after use.

    Every method raises LaunchError when the endpoint fails.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._prefix = split_url(target.url).path.rstrip("/")
        self._headers = {"Content-Type": "application/json", **auth_headers(target)}
        self._http = connection_to(target, _TIMEOUT_S)

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a text, without begin-of-sequence."""
        return self._text(text, special=False)

    def prompt_length(self, text: str) -> int:
        """Return how many tokens a completion's prompt becomes, begin-of-sequence included."""
        return len(self._text(text, special=True))

    def chat_length(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Return how many tokens messages become with the model's chat template around them."""
        if self._target.tokenizer == "vllm":
            asked = {"model": self._target.model, "messages": list(messages), "add_generation_prompt": True}
            return len(self._tokens(asked))
        prompt = self._post("/apply-template", {"messages": list(messages)}).get("prompt")
        if not isinstance(prompt, str):
            raise self._refused("/apply-template", "no 'prompt' in the answer")
        return len(self._tokens({"content": prompt, "add_special": True, "parse_special": True}))

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _text(self, text: str, *, special: bool) -> list[int]:
        if self._target.tokenizer == "llamacpp":
            return self._tokens({"content": text, "add_special": special})
        return self._tokens({"model": self._target.model, "prompt": text, "add_special_tokens": special})

    def _tokens(self, body: dict[str, Any]) -> list[int]:
        tokens = self._post("/tokenize", body).get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            raise self._refused("/tokenize", "no list of token ids in the answer")
        return tokens

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            self._http.request("POST", self._prefix + path, orjson.dumps(body), self._headers)
            response = self._http.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._refused(path, str(error) or type(error).__name__) from None
        if response.status != 200:
            raise self._refused(path, f"status {response.status}: {content[:200].decode('utf-8', 'replace')}")
        try:
            value = orjson.loads(content)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise self._refused(path, "the answer is not a JSON object")
        return value

    def _refused(self, path: str, why: str) -> LaunchError:
        kind = self._target.tokenizer
        return LaunchError(
            f"{self._target.url}{path}: the server's tokenizer failed: {why}",
            fix=f"check that the server is a {kind} server with this endpoint; "
            "or set the recipe's tokenizer to 'none' (lengths are then approximate)",
        )
