"""From recorded exchanges to the event log, after the load."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from prony.load.chunk import UNSTATED, Chunk, ChunkError, Usage, error_text, parse_chunk
from prony.load.exchange import Exchange
from prony.load.sse import SseError, split_events
from prony.measure.eventlog import NEVER, ClientFacts, EventLog, Events, Fault, Ints, Kind, Requests

TOKEN_KINDS = frozenset((Kind.CONTENT, Kind.REASONING, Kind.TOOL))


@dataclass
class Stream:
    """The decoded answer of one request; instants in CLOCK_MONOTONIC ns.

    merged: reads that held more than one token event.
    """

    at: list[int] = field(default_factory=list)
    kind: list[Kind] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    usage: Usage = UNSTATED
    fault: Fault = Fault.OK
    message: str = ""
    ended: bool = False
    merged: int = 0

    def add(self, at: int, chunk: Chunk) -> None:
        """Append one event, with its token count when the server states usage as it goes."""
        kind, tokens = chunk.kind, -1
        if chunk.usage is not None:
            running = self.usage.completion >= 0 or (chunk.has_choice and not chunk.finished)
            gained = chunk.usage.completion - max(self.usage.completion, 0)
            if running and chunk.has_choice and gained > 0:
                tokens = gained  # also of a token that has no text yet: half of a UTF-8 character
                kind = kind if kind in TOKEN_KINDS else Kind.CONTENT
            self.usage = chunk.usage
        self.at.append(at)
        self.kind.append(kind)
        self.tokens.append(tokens)

    def fail(self, fault: Fault, message: str) -> None:
        """Keep the first fault."""
        if self.fault is Fault.OK:
            self.fault, self.message = fault, message


def decode(exchange: Exchange) -> Stream:
    """Decode one exchange; every fault of transport and stream is named. Never raises."""
    stream = Stream(fault=exchange.fault, message=exchange.message)
    response = exchange.response
    if response.status not in (0, 200):
        if exchange.fault in (Fault.OK, Fault.CLOSED_EARLY):
            body = b"".join(response.parts)[:800].decode("utf-8", "replace")[:200]
            stream.fault, stream.message = Fault.HTTP_STATUS, f"status {response.status}: {body}"
        return stream
    if response.parts:
        _decode_body(exchange, stream)
    if exchange.closed and stream.ended and stream.fault is Fault.CLOSED_EARLY:
        stream.fault, stream.message = Fault.OK, ""
    if stream.fault is Fault.OK:
        _judge_end(stream)
    return stream


def _decode_body(exchange: Exchange, stream: Stream) -> None:
    response = exchange.response
    cut = exchange.closed or exchange.fault is not Fault.OK
    last_token_at = NEVER
    try:
        for at, data, terminated in split_events(response.stamps, response.parts, cut):
            if cut and not terminated and not _is_chunk(data):
                break
            chunk = parse_chunk(data)
            stream.add(at, chunk)
            if chunk.kind is Kind.ERROR:
                stream.fail(Fault.STREAM_ERROR, chunk.error)
            stream.ended = stream.ended or chunk.finished or chunk.kind is Kind.DONE
            if stream.kind[-1] in TOKEN_KINDS:
                stream.merged += at == last_token_at
                last_token_at = at
    except (SseError, ChunkError) as problem:
        if exchange.fault in (Fault.OK, Fault.CLOSED_EARLY):
            _fail_garbage(stream, b"".join(response.parts), str(problem))


def _is_chunk(data: bytes) -> bool:
    try:
        parse_chunk(data)
    except ChunkError:
        return False
    return True


def _fail_garbage(stream: Stream, body: bytes, problem: str) -> None:
    message = error_text(body) if not stream.at else None
    if message is not None:
        stream.fault, stream.message = Fault.STREAM_ERROR, message
    else:
        stream.fault, stream.message = Fault.GARBAGE, problem


def _judge_end(stream: Stream) -> None:
    if not stream.ended:
        stream.fail(Fault.CLOSED_EARLY, "the stream ended without a finish reason or [DONE]")
    elif not any(kind in TOKEN_KINDS for kind in stream.kind) or stream.usage.completion == 0:
        stream.fail(Fault.NO_TOKENS, "the stream ended without a generated token")


def _axis(values: Sequence[int], origin_ns: int) -> Ints:
    array = np.asarray(values, dtype=np.int64)
    return np.where(array == NEVER, NEVER, array - origin_ns)


def build_log(
    exchanges: Sequence[Exchange], streams: Sequence[Stream], origin_ns: int, concurrency: int, facts: ClientFacts
) -> EventLog:
    """Lay exchanges and their decoded streams out as the event log, in index order, its zero at origin_ns."""

    def column(values: list[int]) -> Ints:
        return np.asarray(values, dtype=np.int64)

    requests = Requests(
        scheduled=_axis([x.scheduled for x in exchanges], origin_ns),
        sent=_axis([x.sent for x in exchanges], origin_ns),
        headers=_axis([x.response.headers_at for x in exchanges], origin_ns),
        end=_axis([x.end for x in exchanges], origin_ns),
        status=column([x.response.status for x in exchanges]),
        fault=column([int(s.fault) for s in streams]),
        input_planned=column([x.input_planned for x in exchanges]),
        output_planned=column([x.output_planned for x in exchanges]),
        input_counted=column([s.usage.prompt for s in streams]),
        output_counted=column([s.usage.completion for s in streams]),
        cached_counted=column([s.usage.cached for s in streams]),
        connection=column([x.connection for x in exchanges]),
    )
    events = Events(
        request=np.repeat(np.arange(len(streams), dtype=np.int64), [len(s.at) for s in streams]),
        at=_axis([at for s in streams for at in s.at], origin_ns),
        kind=column([int(kind) for s in streams for kind in s.kind]),
        tokens=column([tokens for s in streams for tokens in s.tokens]),
    )
    messages = tuple((x.index, s.message) for x, s in zip(exchanges, streams, strict=True) if s.message)
    return EventLog(concurrency=concurrency, client=facts, requests=requests, events=events, messages=messages)
