"""Conversations as a source: what becomes of every turn, whatever the server does, whoever serves it."""

from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.load.exchange import Exchange
from prony.load.request import Target
from prony.load.workload import Workload, prepare
from prony.measure.eventlog import Fault
from prony.spec.load import LoadPlan

WORDS = Target(url="http://127.0.0.1:1", model="m")


def conversations(requests: int, turns: int, **fields: object) -> Workload:
    asked = {"isl": 4, "osl": 2, "concurrency": 3, "endpoint": "chat", "requests": requests, **fields}
    return prepare(WORDS, LoadPlan.model_validate({**asked, "workload": {"kind": "multi-turn", "turns": turns}}))


def messages(exchange: Exchange) -> list[dict[str, str]]:
    found: list[dict[str, str]] = orjson.loads(exchange.payload.partition(b"\r\n\r\n")[2])["messages"]
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(st.sampled_from(["fail", "end", "end", "end", "take"]), max_size=150),
)
def test_every_turn_is_sent_dropped_or_given_up_once(requests: int, turns: int, workers: int, steps: list[str]) -> None:
    work = conversations(requests, turns)
    seen: list[int] = []
    for worker in range(workers):
        share = work.share(worker, workers)
        source = work.source(worker, workers)
        source.begin(0)
        slots = 3 // workers + (worker < 3 % workers)
        in_flight: list[Exchange] = []
        accounted: list[Exchange] = []
        for step in steps:
            if step == "take" or not in_flight:
                if source.due() is not None:
                    in_flight.append(source.take())
                    assert len(in_flight) <= slots
                continue
            exchange = in_flight.pop(0)
            exchange.end = 1
            exchange.fault = Fault.TIMEOUT if step == "fail" else Fault.OK
            source.ended(exchange)
            accounted += [exchange, *source.dropped()]
        accounted += [*in_flight, *source.abandon()]
        assert sorted(x.index for x in accounted) == sorted(x.index for x in share)
        seen += [x.index for x in share]
    assert sorted(seen) == list(range(requests))


def test_no_conversation_begins_while_another_thinks_in_its_slot() -> None:
    work = conversations(12, 3, concurrency=1)
    source = work.source(0, 1)
    source.begin(0)
    order = []
    while source.due() is not None:
        exchange = source.take()
        order.append(exchange.index)
        exchange.end = 1
        source.ended(exchange)
    assert order == list(range(12))


@pytest.mark.parametrize("fault", [Fault.OK, Fault.TIMEOUT])
def test_a_conversation_is_due_when_the_slot_of_another_is_given_up(fault: Fault) -> None:
    """Not when a lane became idle: it may have been idle while another conversation thought."""
    source = conversations(6, 2, concurrency=1).source(0, 1)
    source.begin(0)
    last = source.take()
    last.end = 1000
    source.ended(last)
    last = source.take()
    last.end, last.fault = 9000, fault
    source.ended(last)
    assert source.take().scheduled == 9000


def test_conversations_of_an_open_loop_begin_at_their_times_and_their_turns_when_they_can() -> None:
    arrival = {"kind": "open", "process": "constant", "stages": [{"rate": 1}]}
    work = conversations(4, 2, concurrency=1, arrival=arrival)
    source = work.source(0, 1)
    source.begin(1000)
    first = source.take()
    assert first.scheduled == 1000 and source.due() == 1_000_001_000
    first.end = 500_000_000
    source.ended(first)
    second = source.take()
    assert (second.index, second.scheduled) == (1, 500_000_000)
    third = source.take()
    assert (third.index, third.scheduled) == (2, 1_000_001_000) and source.due() is None


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_workers_divide_requests_and_follow_one_schedule(workers: int) -> None:
    arrival = {"kind": "open", "stages": [{"rate": 5, "for-s": 4}, {"rate": 0, "for-s": 2}, {"rate": 50}]}
    asked = LoadPlan.model_validate({"isl": 8, "osl": 2, "concurrency": 5, "requests": 101, "arrival": arrival})
    alone = schedule(prepare(WORDS, asked), 1)
    together = schedule(prepare(WORDS, asked), workers)
    assert together == alone and sorted(alone) == list(range(101))
    times = [alone[index] for index in range(101)]
    assert all(before <= after for before, after in pairwise(times)) and len(set(times)) > 95


def schedule(work: Workload, workers: int) -> dict[int, int]:
    """Return when each request is due."""
    found: dict[int, int] = {}
    for worker in range(workers):
        source = work.source(worker, workers)
        source.begin(0)
        taken = []
        while (at := source.due()) is not None:
            exchange = source.take()
            assert exchange.scheduled == at
            found[exchange.index] = at
            taken.append(exchange)
        assert taken == work.share(worker, workers)
    return found


def test_later_turns_say_new_things_and_warm_ups_say_other_things() -> None:
    work = conversations(9, 3, warmups=4, concurrency=1)
    source = work.source(0, 1)
    source.begin(0)
    said = [messages(warmup)[-1]["content"] for warmup in work.warmups]
    while source.due() is not None:
        exchange = source.take()
        said.append(messages(exchange)[-1]["content"])
        exchange.end = 1
        source.ended(exchange)
    assert len(said) == len(set(said)) == 13
