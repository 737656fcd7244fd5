"""However TCP cuts a response, the events and their stamps are the same."""

import contextlib
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.load.chunk import ChunkError, parse_chunk
from prony.load.http import ProtocolError, Response
from prony.load.sse import split_events
from prony.measure.eventlog import Kind

PAYLOADS = st.lists(st.text(st.characters(blacklist_characters="\r\n", codec="utf-8"), max_size=12), max_size=8)
ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\r"])
CUTS = st.lists(st.integers(0, 2000), max_size=12)


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
    found = list(split_events(response.stamps, response.parts))
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


@given(st.binary(max_size=200), CUTS)
def test_arbitrary_bytes_are_an_answer_or_a_protocol_error(data: bytes, cuts: list[int]) -> None:
    response = Response()
    try:
        for stamp, read in enumerate(cut(data, cuts)):
            if response.feed(stamp, read):
                break
    except ProtocolError:
        return
    assert response.size <= len(data)


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
    (event,) = split_events([3], [b": note\nevent: x\ndata: {\ndata: }\n\n"])
    assert event.data == b"{\n}" and event.at == 3


def test_an_answer_followed_by_more_bytes_does_not_keep_its_connection() -> None:
    response = Response()
    assert response.feed(1, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1")
    assert not response.keep_alive and response.parts == [b"ok"]
