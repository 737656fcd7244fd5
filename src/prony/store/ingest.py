"""Finished job folders of a sweep into the store; a result is believed only where its job says the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Where
from prony.base.model import read_model
from prony.measure.result import Result, Row
from prony.measure.rowverdicts import judge_measured
from prony.plan.job import Job
from prony.run.folder import JobFolder
from prony.spec.point import FixedSeqLen
from prony.store.store import Receipt, Store


@dataclass(frozen=True)
class Sweep:
    """What the job folders of a sweep hold: rows, and findings about folders that cannot be believed."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]


def ingest_sweep(store: Store, directory: Path) -> Receipt:
    """Ingest every job below `directory`/jobs that ended with a result; may be done any number of times.

    A damaged file becomes a finding and stops nothing else. Raises LaunchError when the store cannot be written.
    """
    sweep = read_sweep(directory)
    return store.add(sweep.rows, source=str(directory), found=sweep.findings)


def read_sweep(directory: Path) -> Sweep:
    """Read every job below `directory`/jobs that ended with a result."""
    rows: list[Row] = []
    found: list[Finding] = []
    for folder in job_folders(directory):
        try:
            row = finished_row(folder)
        except ConfigError as error:
            found.append(_damaged(folder, error))
        else:
            rows += [row] if row else []
    return Sweep(tuple(rows), tuple(found))


def job_folders(directory: Path) -> Iterator[JobFolder]:
    """List the job folders of a sweep, by name."""
    for path in sorted((directory / "jobs").glob("*/")):
        yield JobFolder(path)


def finished_row(folder: JobFolder) -> Row | None:
    """Return the row of a job that ended with a result, judged again; None for one that did not.

    Raises ConfigError when a file is damaged, or the result is not one of this folder's job.
    """
    record = folder.exit_record()
    if record is None or record.status not in ("succeeded", "invalid"):
        return None
    row, job = read_model(folder.result_file, Result).row, folder.job()
    wrong = ", ".join(_contradictions(row, job))
    if wrong:
        raise ConfigError(
            f"{folder.result_file}: not a result of the job beside it: {wrong}",
            fix="do not edit result.json; measure again",
        )
    news = (verdict for verdict in judge_measured(row) if verdict not in row.verdicts)
    return row.model_copy(update={"verdicts": (*row.verdicts, *news)})


def _contradictions(row: Row, job: Job) -> Iterator[str]:
    """Name what a row says otherwise than its job."""
    point, fixed = job.point, job.point.workload
    said = {
        "key": job.key,
        "origin": "measured",
        "repeat": job.repeat,
        "simulated": job.deployment.simulated,
        "workload": fixed.kind,
        "isl": fixed.isl if isinstance(fixed, FixedSeqLen) else None,
        "osl": fixed.osl if isinstance(fixed, FixedSeqLen) else None,
    }
    of_point = ("config_key", "model", "model_prefix", "precision", "framework", "concurrency", "spec_decoding")
    said |= {name: getattr(point, name) for name in (*of_point, "topology", "disagg", "multinode", "runner", "image")}
    yield from (name for name, expected in said.items() if getattr(row, name) != expected)


def _damaged(folder: JobFolder, error: ConfigError) -> Finding:
    return Finding(
        rule="ingest/damaged",
        severity="error",
        where=Where(file=str(folder.path)),
        message=error.message,
        fix="remove exit.json from that folder and give: prony run … --resume",
    )
