"""The event log on disk: read back as written, whole or refused."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prony.base.errors import LaunchError, MeasurementError
from prony.measure import storage
from prony.measure.eventlog import ClientFacts, EventLog, Events, Fault, Kind, Requests, column_names
from prony.measure.storage import read_log, write_log

FACTS = ClientFacts(
    clock="kernel",
    loop_lag_p99_s=0.001,
    send_lag_p99_s=0.0001,
    merged_reads=1,
    reads=100,
    cpu_s=0.5,
    peak_rss_bytes=1 << 26,
    connections=2,
    connect_mean_s=1e-4,
    started_unix_s=1.8e9,
    prompt_lengths="token-ids",
)


def a_log(requests: int = 5, events: int = 4) -> EventLog:
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(-1, 1 << 50, requests) for name in column_names(Requests)}
    rows = {name: rng.integers(-1, 1 << 50, requests * events) for name in column_names(Events)}
    rows["request"] = np.repeat(np.arange(requests), events)
    columns["fault"] = rng.integers(0, len(Fault), requests)
    rows["kind"] = rng.integers(0, len(Kind), requests * events)
    messages = ((requests - 1, "status 503: überlastet"),) if requests else ()
    return EventLog(4, FACTS, Requests(**columns), Events(**rows), messages)


def same(one: EventLog, other: EventLog) -> bool:
    tables = [(one.requests, other.requests), (one.events, other.events)]
    columns = all(np.array_equal(getattr(a, n), getattr(b, n)) for a, b in tables for n in column_names(type(a)))
    return columns and (one.concurrency, one.client, one.messages) == (other.concurrency, other.client, other.messages)


@pytest.mark.parametrize(("requests", "events"), [(5, 4), (1, 0), (0, 0)])
def test_a_log_is_read_back_as_it_was_written(tmp_path: Path, requests: int, events: int) -> None:
    log = a_log(requests, events)
    write_log(tmp_path / "events.npz", log)
    assert same(read_log(tmp_path / "events.npz"), log)
    assert [path.name for path in tmp_path.iterdir()] == ["events.npz"]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_log_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "events.npz"
    write_log(path, a_log())
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(MeasurementError, match=r"events\.npz: damaged event log"):
        read_log(path)


@given(st.integers(0, 10_000), st.integers(1, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_one_flipped_byte_is_refused_or_harmless(tmp_path: Path, place: int, flip: int) -> None:
    path, log = tmp_path / "events.npz", a_log()
    write_log(path, log)
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= flip
    path.write_bytes(content)
    try:
        found = read_log(path)
    except MeasurementError:
        return
    assert same(found, log)


def test_an_event_of_an_unknown_request_is_refused(tmp_path: Path) -> None:
    log = a_log()
    bad = replace(log, events=replace(log.events, request=log.events.request + 1))
    write_log(tmp_path / "events.npz", bad)
    with pytest.raises(MeasurementError, match="not in the log"):
        read_log(tmp_path / "events.npz")


def rewrite(path: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    """Write the arrays of a log again, changed."""
    with np.load(path) as arrays:
        content = dict(arrays)
    change(content)
    np.savez_compressed(path, **content)


FOREIGN: dict[str, Callable[[dict[str, np.ndarray]], object]] = {
    "floats": lambda log: log.update({"events.at": log["events.at"].astype(float)}),
    "a table in a column": lambda log: log.update({"events.at": log["events.at"].reshape(2, -1)}),
    "a short column": lambda log: log.update({"events.at": log["events.at"][1:]}),
    "a missing column": lambda log: log.pop("events.at"),
    "one array more": lambda log: log.update(more=np.zeros(3)),
    "objects": lambda log: log.update({"events.at": np.array([{"a": 1}] * 20, dtype=object)}),
    "an unknown fault": lambda log: log["requests.fault"].fill(99),
    "an unknown kind": lambda log: log["events.kind"].fill(-7),
    "an instant beyond all": lambda log: log["events.at"].fill(np.iinfo(np.int64).max),
    "an event of no request": lambda log: log["events.request"].fill(-1),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_arrays_that_no_client_writes_are_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "events.npz"
    write_log(path, a_log())
    rewrite(path, FOREIGN[what])
    with pytest.raises(MeasurementError, match=r"events\.npz: damaged event log"):
        read_log(path)


def test_an_array_that_declares_more_than_it_holds_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "events.npz"
    write_log(path, a_log())
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<i8", "fortran_order": False, "shape": (10**15,)})
    members["events.at.npy"] = huge.getvalue() + b"\0" * 160
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(MeasurementError, match="not as long as it says"):
        read_log(path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.npz"
    write_log(path, a_log(requests=1000, events=40))
    monkeypatch.setattr(storage, "MOST_BYTES", 100_000)
    with pytest.raises(MeasurementError, match="unpacks to more than"):
        read_log(path)


def test_a_missing_log_is_a_measurement_error(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="no such event log"):
        read_log(tmp_path / "events.npz")


def test_a_log_that_cannot_be_written_is_a_launch_error_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    with pytest.raises(LaunchError, match="cannot be written"):
        write_log(folder / "events.npz", a_log())
    assert not folder.exists()
