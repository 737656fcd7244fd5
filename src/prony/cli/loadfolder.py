"""What `prony load --out DIR` leaves behind: the plan, the event log, the summary."""

from pathlib import Path
from typing import Literal, NamedTuple

import orjson

from prony.base.errors import ConfigError
from prony.base.files import write_atomic
from prony.base.model import Frozen, read_model, write_model
from prony.cli.console import print_data
from prony.measure.eventlog import EventLog
from prony.measure.storage import read_log, write_log
from prony.measure.summary import LoadSummary
from prony.spec.load import LoadPlan

_PLAN, _EVENTS = "load.json", "events.npz"


class KeptLoad(Frozen):
    """The plan of a load, and the CLOCK_MONOTONIC instant (ns) that its event log counts from."""

    schema_version: Literal["prony.load/1"] = "prony.load/1"
    plan: LoadPlan
    origin_ns: int
    model: str


class Kept(NamedTuple):
    """A load that was run, now or earlier."""

    plan: LoadPlan
    origin_ns: int
    log: EventLog
    model: str


def write_folder(folder: Path, plan: LoadPlan, log: EventLog, origin_ns: int, model: str) -> None:
    """Write plan and event log. Raises LaunchError when the disk refuses."""
    write_model(folder / _PLAN, KeptLoad(plan=plan, origin_ns=origin_ns, model=model))
    write_log(folder / _EVENTS, log)


def read_folder(folder: Path) -> Kept:
    """Read an earlier load. Raises ConfigError or MeasurementError."""
    if not (folder / _PLAN).exists():
        raise ConfigError(
            f"{folder}: no load was kept here ({_PLAN} is missing)", fix="prony load … --out DIR keeps one"
        )
    kept = read_model(folder / _PLAN, KeptLoad)
    return Kept(kept.plan, kept.origin_ns, read_log(folder / _EVENTS), kept.model)


def write_summary(file: Path | None, summary: LoadSummary, origin_ns: int) -> None:
    """Write the summary as JSON, to standard output where there is no file. Raises LaunchError."""
    fields = {**summary.model_dump(mode="json"), "origin_ns": origin_ns}
    text = orjson.dumps(fields, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if file is None:
        print_data(text.decode())
    else:
        write_atomic(file, text)


def write_inferencex(file: Path, kept: Kept) -> None:
    """Write the raw result file that the tools of InferenceX read. Raises LaunchError."""
    from prony.measure.inferencex import raw_result

    write_atomic(file, raw_result(kept.log, kept.plan, kept.model))
