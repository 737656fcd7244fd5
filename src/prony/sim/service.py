"""What the simulated server answers, path by path."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import prony
from prony.base.errors import ConfigError
from prony.sim.completion import BadRequestError, chat_ids, prompt_ids, read_completion, read_json
from prony.sim.faults import Fault, Faults, read_fault
from prony.sim.http import Connection, Request
from prony.sim.pacer import Pacer
from prony.sim.stream import Load, Stream
from prony.sim.timing import Timing, schedule
from prony.sim.tokens import decode, generate

VERSION = f"prony-sim {prony.__version__}"
Handler = Callable[[Request, Connection], None]


@dataclass(frozen=True)
class Options:
    """What the server is started with."""

    model: str
    timing: Timing
    slots: int = 0
    role_chunk_s: float = 0.0
    max_model_len: int = 32768
    seed: int = 0


class Service:
    """All routes over one load, one pacer and one set of faults."""

    def __init__(self, options: Options, faults: Faults, pacer: Pacer) -> None:
        self.options = options
        self.faults = faults
        self.pacer = pacer
        self.load = Load(options.slots)
        self.completions = 0
        self.routes: dict[tuple[str, str], Handler] = {
            ("POST", "/v1/completions"): lambda request, connection: self.complete(request, connection, chat=False),
            ("POST", "/v1/chat/completions"): lambda request, connection: self.complete(request, connection, chat=True),
            ("POST", "/tokenize"): self.tokenize,
            ("POST", "/detokenize"): self.detokenize,
            ("GET", "/health"): lambda _, connection: connection.reply(200, b""),
            ("GET", "/version"): lambda _, connection: connection.reply(200, {"version": VERSION}),
            ("GET", "/v1/models"): self.models,
            ("GET", "/metrics"): self.metrics,
            ("GET", "/fault"): self.show_faults,
            ("POST", "/fault"): self.set_faults,
        }

    def handle(self, request: Request, connection: Connection) -> None:
        """Answer one request."""
        handler = self.routes.get((request.method, request.path))
        if handler is None:
            known = any(path == request.path for _, path in self.routes)
            connection.reply(405 if known else 404, {"detail": "Method Not Allowed" if known else "Not Found"})
            return
        try:
            handler(request, connection)
        except BadRequestError as error:
            connection.reply(error.status, error.body())

    def complete(self, request: Request, connection: Connection, *, chat: bool) -> None:
        """Start a completion."""
        struck = self.faults.next_request()
        if "http-500" in struck:
            error = {"message": "fault http-500", "type": "InternalServerError", "param": None, "code": 500}
            connection.reply(500, {"error": error})
            return
        self.completions += 1
        completion = read_completion(
            request.body,
            chat=chat,
            model=self.options.model,
            max_model_len=self.options.max_model_len,
            number=self.completions,
            seed=self.options.seed,
            created=int(time.time()),
        )
        events = schedule(self.options.timing, completion.prompt_tokens, completion.output_tokens)
        tokens = generate(self.options.seed * 1_000_003 + self.completions, completion.output_tokens)
        stream = Stream(completion, events, tokens, struck, connection, self.pacer, self.load)
        stream.arrive(request.received_s, self.options.role_chunk_s)

    def tokenize(self, request: Request, connection: Connection) -> None:
        """Answer as vLLM does: count, max_model_len, tokens."""
        asked = read_json(request.body)
        ids = chat_ids(asked["messages"]) if "messages" in asked else prompt_ids(asked.get("prompt"))
        connection.reply(200, {"count": len(ids), "max_model_len": self.options.max_model_len, "tokens": ids})

    def detokenize(self, request: Request, connection: Connection) -> None:
        """Answer as vLLM does: prompt."""
        ids = prompt_ids(read_json(request.body).get("tokens"))
        try:
            connection.reply(200, {"prompt": decode(ids)})
        except ValueError as error:
            raise BadRequestError(str(error)) from None

    def models(self, _: Request, connection: Connection) -> None:
        """List the one model."""
        model = {"id": self.options.model, "object": "model", "owned_by": "prony-sim"}
        model_len: dict[str, Any] = {"max_model_len": self.options.max_model_len}
        connection.reply(200, {"object": "list", "data": [model | model_len]})

    def metrics(self, _: Request, connection: Connection) -> None:
        """Show load and counts under vLLM's names."""
        lines = [
            ("gauge", "num_requests_running", self.load.running),
            ("gauge", "num_requests_waiting", len(self.load.waiting)),
            ("counter", "prompt_tokens_total", self.load.prompt_tokens),
            ("counter", "generation_tokens_total", self.load.generation_tokens),
        ]
        label = self.options.model.replace("\\", "\\\\").replace('"', '\\"')
        text = "".join(
            f'# TYPE vllm:{name} {kind}\nvllm:{name}{{model_name="{label}"}} {value}\n' for kind, name, value in lines
        )
        connection.reply(200, text, "text/plain; version=0.0.4; charset=utf-8")

    def show_faults(self, _: Request, connection: Connection) -> None:
        """List the faults that are on."""
        faults = [{"name": fault.name, "every": fault.every, "seconds": fault.seconds} for fault in self.faults.faults]
        connection.reply(200, {"faults": faults, "requests": self.faults.requests})

    def set_faults(self, request: Request, connection: Connection) -> None:
        """Replace all faults by those of the query (`POST /fault?http-500=3&ignore-term`) and count from 0 again."""
        try:
            chosen: list[Fault] = [read_fault(unquote(part)) for part in request.query.split("&") if part]
        except ConfigError as error:
            raise BadRequestError(str(error)) from None
        self.faults.faults = tuple(chosen)
        self.faults.requests = 0
        self.show_faults(request, connection)
