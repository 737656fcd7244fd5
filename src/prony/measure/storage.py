"""The event log on disk: one compressed .npz with a JSON header; whole or absent."""

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from prony.base.errors import MeasurementError
from prony.base.files import write_atomic
from prony.base.model import Frozen, canonical_json, first_fault
from prony.measure.eventlog import EventLog, Events, Fault, Ints, Kind, Requests, column_names
from prony.measure.observed import ClientFacts, Disturbance, EngineFacts

_HEADER = "header"
_TABLES: tuple[tuple[str, type[Requests] | type[Events]], ...] = (("requests", Requests), ("events", Events))
MOST_BYTES = 4 << 30
"""The most that an event log may unpack to: 40 bytes per event are 100 million events."""
MOST_NS = 1 << 60
_COMPRESSION = 1  # of stamps, a higher level makes 10 % less of three times the work


class _Header(Frozen):
    schema_version: Literal["prony.eventlog/1"] = "prony.eventlog/1"
    concurrency: int = Field(gt=0)
    client: ClientFacts
    messages: tuple[tuple[int, str], ...] = ()
    disturbance: Disturbance | None = None
    engine: EngineFacts | None = None
    arrival: Literal["closed", "open"] = "closed"
    streamed: bool = True


def write_log(path: Path, log: EventLog) -> None:
    """Write an event log by atomic rename. Raises LaunchError when the disk refuses."""
    header = _Header(
        concurrency=log.concurrency,
        client=log.client,
        messages=log.messages,
        disturbance=log.disturbance,
        engine=log.engine,
        arrival=log.arrival,
        streamed=log.streamed,
    )
    arrays: dict[str, NDArray[Any]] = {_HEADER: np.frombuffer(canonical_json(header), dtype=np.uint8)}
    arrays |= {f"requests.{name}": getattr(log.requests, name) for name in column_names(Requests)}
    arrays |= {f"events.{name}": getattr(log.events, name) for name in column_names(Events)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    write_atomic(path, buffer.getvalue())


def read_log(path: Path) -> EventLog:
    """Read an event log. Raises MeasurementError when it is missing, damaged or of another schema."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive)
            header = _Header.model_validate_json(_array(archive, _HEADER, np.uint8).tobytes())
            requests = Requests(**_columns(archive, "requests", Requests))
            events = Events(**_columns(archive, "events", Events))
    except FileNotFoundError:
        raise MeasurementError(f"{path}: no such event log", fix="run the job again") from None
    except ValidationError as error:
        raise _damaged(path, first_fault(error)) from None
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, EOFError, RuntimeError) as error:
        raise _damaged(path, str(error) or type(error).__name__) from None
    log = EventLog(
        concurrency=header.concurrency,
        client=header.client,
        requests=requests,
        events=events,
        messages=header.messages,
        disturbance=header.disturbance,
        engine=header.engine,
        arrival=header.arrival,
        streamed=header.streamed,
    )
    for fault in _contradictions(log):
        raise _damaged(path, fault)
    return log


def _check_members(archive: zipfile.ZipFile) -> None:
    """Refuse an archive that does not hold exactly the arrays of a log, or more than memory should take."""
    expected = {_HEADER, *(f"{table}.{name}" for table, kind in _TABLES for name in column_names(kind))}
    members = archive.infolist()
    names = [member.filename.removesuffix(".npy") for member in members]
    if set(names) != expected or len(names) != len(expected):
        raise ValueError(f"not the arrays of an event log: {', '.join(sorted(set(names) ^ expected)[:3]) or 'doubled'}")
    if sum(member.file_size for member in members) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES >> 30} GiB")
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
        raise ValueError("it is compressed in a way that no event log is")


def _array(archive: zipfile.ZipFile, name: str, kind: type[np.int64] | type[np.uint8]) -> NDArray[Any]:
    """Read one array whose declared type and shape are those of its bytes; nothing is unpickled."""
    with archive.open(f"{name}.npy") as file:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if read is None:
            raise ValueError(f"{name}: unknown array format {version}")
        shape, _, dtype = read(file)
        if dtype != np.dtype(kind) or len(shape) != 1:
            raise ValueError(f"{name} is not a list of {np.dtype(kind).name}")
        content = file.read()
    if len(content) != shape[0] * dtype.itemsize:
        raise ValueError(f"{name} is not as long as it says")
    return np.frombuffer(content, dtype=kind).copy()


def _contradictions(log: EventLog) -> Iterator[str]:
    """Say what in a log no client can have seen."""
    requests, events, count = log.requests, log.events, len(log.requests)
    indices = events.request
    if len(events) and not 0 <= int(indices.min()) <= int(indices.max()) < count:
        yield "an event of a request that is not in the log"
    if any(not 0 <= index < count for index, _ in log.messages):
        yield "a message of a request that is not in the log"
    if not np.isin(requests.fault, list(Fault)).all():
        yield "an unknown fault"
    if not np.isin(events.kind, list(Kind)).all():
        yield "an event of unknown kind"
    columns = [getattr(table, name) for table in (requests, events) for name in column_names(type(table))]
    if any(((column < -MOST_NS) | (column > MOST_NS)).any() for column in columns):
        yield "an instant or a count that nothing reaches"


def _columns(archive: zipfile.ZipFile, table: str, kind: type[Requests] | type[Events]) -> dict[str, Ints]:
    columns: dict[str, Ints] = {name: _array(archive, f"{table}.{name}", np.int64) for name in column_names(kind)}
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError(f"columns of {table} differ in length")
    return columns


def _damaged(path: Path, why: str) -> MeasurementError:
    return MeasurementError(f"{path}: damaged event log: {why}", fix="run the job again")
