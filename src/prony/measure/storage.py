"""The event log on disk: one compressed .npz with a JSON header; whole or absent."""

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from prony.base.errors import MeasurementError
from prony.base.files import write_atomic
from prony.base.model import Frozen, canonical_json, first_fault
from prony.measure.eventlog import ClientFacts, EventLog, Events, Ints, Requests, column_names

_HEADER = "header"


class _Header(Frozen):
    schema_version: Literal["prony.eventlog/1"] = "prony.eventlog/1"
    concurrency: int
    client: ClientFacts
    messages: tuple[tuple[int, str], ...] = ()


def write_log(path: Path, log: EventLog) -> None:
    """Write an event log by atomic rename. Raises LaunchError when the disk refuses."""
    header = _Header(concurrency=log.concurrency, client=log.client, messages=log.messages)
    arrays: dict[str, NDArray[Any]] = {_HEADER: np.frombuffer(canonical_json(header), dtype=np.uint8)}
    arrays |= {f"requests.{name}": getattr(log.requests, name) for name in column_names(Requests)}
    arrays |= {f"events.{name}": getattr(log.events, name) for name in column_names(Events)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_atomic(path, buffer.getvalue())


def read_log(path: Path) -> EventLog:
    """Read an event log. Raises MeasurementError when it is missing, damaged or of another schema."""
    try:
        content = path.read_bytes()
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            header = _Header.model_validate_json(arrays[_HEADER].tobytes())
            requests = Requests(**_columns(arrays, "requests", Requests))
            events = Events(**_columns(arrays, "events", Events))
    except FileNotFoundError:
        raise MeasurementError(f"{path}: no such event log", fix="run the job again") from None
    except ValidationError as error:
        raise _damaged(path, first_fault(error)) from None
    except (OSError, zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, NotImplementedError) as error:
        raise _damaged(path, str(error) or type(error).__name__) from None
    if len(events) and not 0 <= int(events.request.min()) <= int(events.request.max()) < len(requests):
        raise _damaged(path, "an event of a request that is not in the log")
    return EventLog(header.concurrency, header.client, requests, events, header.messages)


def _columns(arrays: "np.lib.npyio.NpzFile", table: str, kind: type[Requests] | type[Events]) -> dict[str, Ints]:
    columns = {name: arrays[f"{table}.{name}"] for name in column_names(kind)}
    if any(column.dtype != np.int64 or column.ndim != 1 for column in columns.values()):
        raise ValueError(f"a column of {table} is not a list of 64-bit integers")
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError(f"columns of {table} differ in length")
    return columns


def _damaged(path: Path, why: str) -> MeasurementError:
    return MeasurementError(f"{path}: damaged event log: {why}", fix="run the job again")
