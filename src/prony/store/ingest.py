"""Finished job folders of a sweep into the store."""

from collections.abc import Iterator
from pathlib import Path

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Where
from prony.base.model import read_model
from prony.measure.result import Result, Row
from prony.run.folder import JobFolder
from prony.store.store import Receipt, Store


def ingest_sweep(store: Store, directory: Path) -> Receipt:
    """Ingest every job below `directory`/jobs that ended with a result; may be done any number of times.

    A damaged file becomes a finding and stops nothing else. Raises LaunchError when the store cannot be written.
    """
    rows: list[Row] = []
    found: list[Finding] = []
    for folder in job_folders(directory):
        try:
            row = finished_row(folder)
        except ConfigError as error:
            found.append(_damaged(folder, error))
        else:
            rows += [row] if row else []
    return store.add(rows, source=str(directory), found=found)


def job_folders(directory: Path) -> Iterator[JobFolder]:
    """List the job folders of a sweep, by name."""
    for path in sorted((directory / "jobs").glob("*/")):
        yield JobFolder(path)


def finished_row(folder: JobFolder) -> Row | None:
    """Return the row of a job that ended with a result, None for one that did not. Raises ConfigError when damaged."""
    record = folder.exit_record()
    if record is None or record.status not in ("succeeded", "invalid"):
        return None
    return read_model(folder.result_file, Result).row


def _damaged(folder: JobFolder, error: ConfigError) -> Finding:
    return Finding(
        rule="ingest/damaged",
        severity="error",
        where=Where(file=str(folder.path)),
        message=error.message,
        fix="remove exit.json from that folder and give: prony run … --resume",
    )
