"""What one worker process has measured, and several of them as one log."""

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prony.load.exchange import Exchange
from prony.measure.eventlog import NEVER, ClientFacts, EventLog, Events, Ints, Requests, column_names

_USER_STAMPS_SHARE = 0.01


@dataclass(frozen=True)
class WorkerFacts:
    """What a worker says of itself. Lags: how late each tick of its loop was, in ns; times in ns where named so."""

    kernel_reads: int
    user_reads: int
    reads: int
    merged_reads: int
    clock_steps: int
    cpu_s: float
    wall_s: float
    total_cpu_s: float
    peak_rss_bytes: int
    connections: int
    connect_ns: int
    tls_ns: int
    lags_ns: Ints


@dataclass(frozen=True)
class Part:
    """A worker's share of a log. index: of its requests in the whole; events are grouped by request, in that order."""

    index: Ints
    requests: Requests
    events: Events
    messages: tuple[tuple[int, str], ...]
    facts: WorkerFacts


@dataclass(frozen=True)
class Setting:
    """What all parts of a load share."""

    concurrency: int
    arrival_open: bool
    streamed: bool
    prompt_lengths: Literal["token-ids", "server-tokenizer", "approximate"]
    started_unix_s: float
    start_s: float
    dns_s: float
    tls: bool


def build_part(exchanges: Sequence[Exchange], origin_ns: int, facts: WorkerFacts) -> Part:
    """Lay ended exchanges out in columns, in their order, the axis' zero at origin_ns."""
    answers = [exchange.answer for exchange in exchanges]

    def column(values: list[int]) -> Ints:
        return np.asarray(values, dtype=np.int64)

    def axis(values: Ints) -> Ints:
        return np.where(values == NEVER, NEVER, values - origin_ns)

    requests = Requests(
        scheduled=axis(column([x.scheduled for x in exchanges])),
        sent=axis(column([x.sent for x in exchanges])),
        headers=axis(column([a.response.headers_at for a in answers])),
        end=axis(column([x.end for x in exchanges])),
        status=column([a.response.status for a in answers]),
        fault=column([int(x.fault) for x in exchanges]),
        input_planned=column([x.input_planned for x in exchanges]),
        output_planned=column([x.output_planned for x in exchanges]),
        input_counted=column([a.usage.prompt for a in answers]),
        output_counted=column([a.usage.completion for a in answers]),
        cached_counted=column([a.usage.cached for a in answers]),
        connection=column([x.connection for x in exchanges]),
    )
    counts = [len(a.at) for a in answers]
    events = Events(
        request=np.repeat(np.arange(len(answers), dtype=np.int64), counts),
        at=axis(np.frombuffer(b"".join(a.at.tobytes() for a in answers), dtype=np.int64)),
        kind=np.frombuffer(b"".join(a.kind for a in answers), dtype=np.uint8).astype(np.int64),
        tokens=_tokens([a.tokens.tobytes() for a in answers], counts),
    )
    messages = tuple((x.index, x.message) for x in exchanges if x.message)
    return Part(column([x.index for x in exchanges]), requests, events, messages, facts)


def _tokens(told: list[bytes], counts: list[int]) -> Ints:
    """Return the tokens of each event; an answer that tells of none has none told for all of its events."""
    if not any(told):
        return np.full(sum(counts), NEVER, dtype=np.int64)
    silent = [one or np.full(count, NEVER, dtype=np.int64).tobytes() for one, count in zip(told, counts, strict=True)]
    return np.frombuffer(b"".join(silent), dtype=np.int64)


def worker_facts(
    exchanges: Sequence[Exchange], counts: tuple[int, int, int], times: tuple[float, float], wire: tuple[int, int, int],
    lags_ns: Ints,
) -> WorkerFacts:  # fmt: skip
    """Return a worker's facts. counts: kernel, user stamps, clock steps; times: CPU, wall of the phase in s; wire:
    connections, their connect and TLS ns."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return WorkerFacts(
        kernel_reads=counts[0],
        user_reads=counts[1],
        reads=sum(x.answer.reads for x in exchanges),
        merged_reads=sum(x.answer.merged for x in exchanges),
        clock_steps=counts[2],
        cpu_s=times[0],
        wall_s=times[1],
        total_cpu_s=time.process_time(),
        peak_rss_bytes=usage.ru_maxrss * 1024,
        connections=wire[0],
        connect_ns=wire[1],
        tls_ns=wire[2],
        lags_ns=lags_ns,
    )


def merge(parts: Sequence[Part], setting: Setting) -> EventLog:
    """Return the log of all workers, requests in index order."""
    index = np.concatenate([part.index for part in parts])
    order = np.argsort(index, kind="stable")
    requests = Requests(
        **{name: _joined([getattr(part.requests, name) for part in parts])[order] for name in column_names(Requests)}
    )
    owner = np.concatenate([part.index[part.events.request] for part in parts])
    by_request = np.argsort(owner, kind="stable")
    events = {
        name: _joined([getattr(part.events, name) for part in parts])[by_request]
        for name in column_names(Events)
        if name != "request"
    }
    return EventLog(
        concurrency=setting.concurrency,
        client=_facts([part.facts for part in parts], requests, setting),
        requests=requests,
        events=Events(request=owner[by_request], **events),
        messages=tuple(sorted(message for part in parts for message in part.messages)),
        arrival="open" if setting.arrival_open else "closed",
        streamed=setting.streamed,
    )


def _joined(columns: list[Ints]) -> Ints:
    return np.concatenate(columns)


def _facts(facts: Sequence[WorkerFacts], requests: Requests, setting: Setting) -> ClientFacts:
    kernel, user = sum(f.kernel_reads for f in facts), sum(f.user_reads for f in facts)
    reads = kernel + user
    connections = sum(f.connections for f in facts)
    sent = requests.sent != NEVER
    return ClientFacts(
        clock="kernel" if reads and user <= _USER_STAMPS_SHARE * reads else "user",
        loop_lag_p99_s=_p99_s(np.concatenate([f.lags_ns for f in facts])),
        send_lag_p99_s=_p99_s((requests.sent - requests.scheduled)[sent]),
        merged_reads=sum(f.merged_reads for f in facts),
        reads=sum(f.reads for f in facts),
        cpu_s=sum(f.cpu_s for f in facts),
        peak_rss_bytes=sum(f.peak_rss_bytes for f in facts),
        connections=connections,
        connect_mean_s=sum(f.connect_ns for f in facts) / 1e9 / max(1, connections),
        started_unix_s=setting.started_unix_s,
        prompt_lengths=setting.prompt_lengths,
        clock_steps=max(f.clock_steps for f in facts),
        workers=len(facts),
        cpu_share=max(f.cpu_s / f.wall_s if f.wall_s > 0 else 0.0 for f in facts),
        total_cpu_s=sum(f.total_cpu_s for f in facts),
        dns_s=setting.dns_s,
        tls_mean_s=sum(f.tls_ns for f in facts) / 1e9 / max(1, connections) if setting.tls else None,
        start_s=setting.start_s,
        detail=f"{user} of {reads} reads had no kernel stamp" if user else "",
    )


def _p99_s(values_ns: NDArray[np.int64]) -> float:
    return float(np.percentile(values_ns, 99)) / 1e9 if len(values_ns) else 0.0
