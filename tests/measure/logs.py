"""Event logs made by hand, for tests of what is computed from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from prony.measure.eventlog import ClientFacts, EventLog, Events, Fault, Ints, Kind, Requests

MS = 1_000_000


@dataclass
class Made:
    """One request of a log: instants in ms."""

    sent: float
    tokens_at: Sequence[float]
    end: float | None = None
    output: int | None = None
    planned_output: int | None = None
    input: int = 100
    planned_input: int = 100
    fault: Fault = Fault.OK
    per_event: Sequence[int] | None = None
    kinds: Sequence[Kind] | None = None
    extra: Sequence[tuple[float, Kind]] = field(default_factory=tuple)
    due: float | None = None


def client(**changes: object) -> ClientFacts:
    facts = ClientFacts(
        clock="kernel", loop_lag_p99_s=1e-4, send_lag_p99_s=1e-4, merged_reads=0, reads=1000, cpu_s=0.1,
        peak_rss_bytes=1, connections=1, connect_mean_s=1e-4, started_unix_s=0.0, prompt_lengths="token-ids",
    )  # fmt: skip
    return facts.model_copy(update=changes)


def make_log(made: Sequence[Made], concurrency: int = 1, facts: ClientFacts | None = None, **more: object) -> EventLog:
    events = [event for index, one in enumerate(made) for event in _events(index, one)]
    columns = list(zip(*events, strict=True)) or [(), (), (), ()]
    outputs = [one.output if one.output is not None else len(one.tokens_at) for one in made]
    ends = [one.end if one.end is not None else max([one.sent, *one.tokens_at]) for one in made]
    requests = Requests(
        scheduled=_ns([one.sent if one.due is None else one.due for one in made]), sent=_ns([one.sent for one in made]),
        headers=_ns([one.sent for one in made]), end=_ns(ends), status=_ints([200 for _ in made]),
        fault=_ints([int(one.fault) for one in made]), input_planned=_ints([one.planned_input for one in made]),
        output_planned=_ints([one.planned_output or out for one, out in zip(made, outputs, strict=True)]),
        input_counted=_ints([one.input for one in made]), output_counted=_ints(outputs),
        cached_counted=_ints([0 for _ in made]), connection=_ints([0 for _ in made]),
    )  # fmt: skip
    return EventLog(
        concurrency=concurrency,
        client=facts or client(),
        requests=requests,
        events=Events(_ints(columns[0]), _ns(columns[1]), _ints(columns[2]), _ints(columns[3])),
        messages=tuple(more.get("messages", ())),  # type: ignore[arg-type]
        arrival=more.get("arrival", "closed"),  # type: ignore[arg-type]
        streamed=bool(more.get("streamed", True)),
    )


def closed_loop(
    requests: int, concurrency: int, latency_ms: float = 100.0, tokens: int = 11, turn_ms: float = 0.2
) -> EventLog:
    """A correct closed loop: every slot sends its next request `turn_ms` after the end of the last."""
    free = [0.0] * concurrency
    made = []
    for number in range(requests):
        slot = free.index(min(free))
        sent = free[slot]
        mine = latency_ms * (0.8 + 0.4 * ((number * 7919) % 97) / 96)
        made.append(Made(sent=sent, tokens_at=list(np.linspace(sent + mine / 5, sent + mine, tokens))))
        free[slot] = sent + mine + turn_ms
    return make_log(made, concurrency)


def loop(requests: int, concurrency: int, latency_ms: Callable[[int, float], float], tokens: int = 21) -> EventLog:
    """A closed loop whose latencies depend on the request's number and its send instant (ms)."""
    free = [0.0] * concurrency
    made = []
    for number in range(requests):
        slot = free.index(min(free))
        sent = free[slot]
        mine = latency_ms(number, sent)
        made.append(Made(sent=sent, tokens_at=list(np.linspace(sent + mine / 5, sent + mine, tokens))))
        free[slot] = sent + mine
    return make_log(made, concurrency)


def _events(index: int, one: Made) -> list[tuple[int, float, int, int]]:
    kinds = one.kinds or [Kind.CONTENT] * len(one.tokens_at)
    tokens = one.per_event or [-1] * len(one.tokens_at)
    found = [(index, at, int(kind), k) for at, kind, k in zip(one.tokens_at, kinds, tokens, strict=True)]
    found += [(index, at, int(kind), -1) for at, kind in one.extra]
    return sorted(found, key=lambda event: event[1])


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _ns(values: Sequence[float]) -> Ints:
    return np.array([round(value * MS) for value in values], dtype=np.int64)
