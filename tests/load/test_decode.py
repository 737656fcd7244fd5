"""However TCP cuts a response, the events and their stamps are the same."""

import contextlib
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.load.answer import Answer
from prony.load.chunk import ChunkError, parse_chunk
from prony.load.clock import StampClock
from prony.load.http import ProtocolError, Response, in_chunks
from prony.load.sse import Splitter, SseEvent
from prony.measure.eventlog import Fault, Kind

PAYLOADS = st.lists(st.text(st.characters(blacklist_characters="\r\n", codec="utf-8"), max_size=12), max_size=8)
ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\r"])
CUTS = st.lists(st.integers(0, 2000), max_size=12)
TEXTS = st.lists(st.text(max_size=6) | st.sampled_from([" time", '"', "\\", "text", "\n\n", "0\r\n\r\n"]), max_size=12)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(bounds) if b > a]


def chunked(body: bytes, places: list[int]) -> bytes:
    return b"".join(b"%x;x=1\r\n%s\r\n" % (len(part), part) for part in cut(body, places)) + b"0\r\n\r\n"


def framed(body: bytes, how: str, places: list[int]) -> bytes:
    if how == "chunked":
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body, places)
    if how == "length":
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    return b"HTTP/1.1 200 OK\r\n\r\n" + body


def split(stamps: list[int], parts: list[bytes]) -> list[SseEvent]:
    splitter = Splitter()
    found = [event for at, part in zip(stamps, parts, strict=True) for event in splitter.feed(at, part)]
    return [*found, *splitter.finish(cut=False)]


@given(PAYLOADS, ENDINGS, st.sampled_from(["chunked", "length", "close"]), CUTS, CUTS)
def test_any_cut_gives_the_same_events_each_stamped_by_the_read_with_its_final_byte(
    payloads: list[str], ending: bytes, how: str, chunk_cuts: list[int], read_cuts: list[int]
) -> None:
    events = [b"data: " + payload.encode() + ending * 2 for payload in payloads]
    wire = framed(b"".join(events), how, chunk_cuts)
    reads = cut(wire, read_cuts)
    response = Response()
    finished = [response.feed(stamp, read) for stamp, read in enumerate(reads)]
    assert finished == [False] * (len(reads) - 1) + [how != "close"]
    assert b"".join(response.parts) == b"".join(events)
    found = split(response.stamps, response.parts)
    assert [event.data for event in found] == [payload.encode() for payload in payloads]
    assert [event.at for event in found] == final_reads(events, response)


def final_reads(events: list[bytes], response: Response) -> list[int]:
    """For each event the stamp of the body byte that ends it, found byte by byte."""
    owner = [stamp for stamp, part in zip(response.stamps, response.parts, strict=True) for _ in part]
    ends, total = [], 0
    for event in events:
        total += len(event)
        ends.append(owner[total - 1])
    return ends


def stream_of(texts: list[str], *, chat: bool) -> bytes:
    """A chunked answer with an event per text, a finish reason, a usage and the end mark."""

    def event(value: object) -> bytes:
        body = b"data: " + (value if isinstance(value, bytes) else orjson.dumps(value)) + b"\n\n"
        return b"%x\r\n%s\r\n" % (len(body), body)

    def choice(text: str, finish: str | None) -> dict[str, object]:
        said = {"delta": {"content": text}} if chat else {"text": text}
        return {"id": "c-1", "choices": [{"index": 0, **said, "logprobs": None, "finish_reason": finish}]}

    events = [event(choice(text, None)) for text in texts] + [event(choice(" end", "length"))]
    events.append(event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": len(texts) + 1}}))
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join([*events, event(b"[DONE]")]) + b"0\r\n\r\n"


@given(TEXTS, st.booleans(), CUTS, st.integers(1, 9))
def test_an_answer_decoded_in_bites_is_the_answer_decoded_by_the_book(
    texts: list[str], chat: bool, read_cuts: list[int], bite: int
) -> None:
    """The short way for events like those before never differs from reading each as JSON."""
    wire = stream_of(texts, chat=chat)
    reads = list(enumerate(cut(wire, read_cuts)))
    answer, clock = Answer(keep_text=True), StampClock()
    complete = False
    for start in range(0, len(reads), bite):
        answer.raw.extend(reads[start : start + bite])
        complete = answer.advance(clock)
    answer.finish(cut=False)
    response = Response()
    assert [response.feed(at, read) for at, read in reads][-1] and complete
    expected = split(response.stamps, response.parts)
    assert list(answer.at) == [event.at for event in expected]
    assert list(answer.kind) == [parse_chunk(event.data).kind for event in expected]
    assert answer.text == "".join(texts) + " end"
    assert answer.fault is Fault.OK and answer.ended and answer.usage.completion == len(texts) + 1
    assert answer.response.size == response.size and answer.reads == len(reads)


@given(st.binary(max_size=200), CUTS)
def test_arbitrary_bytes_are_an_answer_or_a_protocol_error(data: bytes, cuts: list[int]) -> None:
    answer, clock = Answer(), StampClock()
    try:
        for stamp, read in enumerate(cut(data, cuts)):
            answer.raw.append((stamp, read))
            if answer.advance(clock):
                break
    except ProtocolError:
        return
    answer.finish(cut=True)
    assert answer.response.size <= len(data)


@given(st.binary(max_size=60))
def test_arbitrary_payloads_are_a_chunk_or_a_chunk_error(data: bytes) -> None:
    with contextlib.suppress(ChunkError):
        assert parse_chunk(data).kind in Kind


@given(st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3), st.lists, max_leaves=5))
@pytest.mark.parametrize("shape", ['{"choices":[{"delta":%s}]}', '{"choices":%s}', '{"choices":[],"usage":%s}', "%s"])
def test_any_json_in_any_place_is_a_chunk_or_a_chunk_error(shape: str, value: object) -> None:
    with contextlib.suppress(ChunkError):
        assert parse_chunk((shape % orjson.dumps(value).decode()).encode()).kind in Kind


def test_several_data_lines_are_one_payload() -> None:
    (event,) = split([3], [b": note\nevent: x\ndata: {\ndata: }\n\n"])
    assert event.data == b"{\n}" and event.at == 3


def test_an_answer_followed_by_more_bytes_does_not_keep_its_connection() -> None:
    response = Response()
    assert response.feed(1, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1")
    assert not response.keep_alive and response.parts == [b"ok"]
    answer = Answer()
    answer.raw = [(1, stream_of(["a"], chat=False) + b"HTTP/1.1 200 OK\r\n")]
    assert answer.advance(StampClock()) and not answer.response.keep_alive


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nA: b\r\ntransfer-encoding: Chunked\r\nC: d\r\n\r\nrest", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nTransfer-Encoding: chunked\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nX-Transfer-Encoding: chunked\r\n\r\n", False),
        (b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", False),
    ],
)
def test_only_a_whole_head_that_announces_chunks_is_taken_for_one(head: bytes, expected: bool) -> None:
    assert in_chunks(head) is expected


def test_a_step_of_the_wall_clock_does_not_move_what_was_received_before_it() -> None:
    offsets = iter([1_000_000, 1_000_100, 7_001_000_100])
    clock = StampClock(lambda: next(offsets))
    answer = Answer()
    clock.before_step = lambda: bool(answer.advance(clock)) or None
    answer.raw = [([(1, 35, _timespec(5, 0))], b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")]
    clock.resample()
    assert clock.steps == 0 and answer.raw
    clock.resample()
    assert clock.steps == 1 and answer.response.headers_at == 5_000_000_000 - 1_000_100
    answer.raw = [([(1, 35, _timespec(12, 0))], b"x")]
    answer.advance(clock)
    assert answer.last_at == 12_000_000_000 - 7_001_000_100


def _timespec(seconds: int, nanoseconds: int) -> bytes:
    return seconds.to_bytes(8, "little") + nanoseconds.to_bytes(8, "little")


def test_a_choice_that_says_nothing_yet_is_the_roles_though_it_carries_usage() -> None:
    usage = '"usage": {"prompt_tokens": 5, "completion_tokens": %d}'
    role = '{"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": null}], ' + usage % 0 + "}"
    last = '{"choices": [{"delta": {}, "finish_reason": "stop"}], ' + usage % 3 + "}"
    assert parse_chunk(role.encode()).kind is Kind.ROLE
    assert parse_chunk(last.encode()).kind is Kind.USAGE
    assert parse_chunk(('{"choices": [], ' + usage % 3 + "}").encode()).kind is Kind.USAGE
