from pathlib import Path

import pytest

from prony.base.model import write_model
from prony.measure.result import Result
from prony.run.folder import ExitRecord, Status
from prony.store.ingest import ingest_sweep
from prony.store.store import Store, open_store
from tests.store.rows import make_row


@pytest.fixture
def store(tmp_path: Path):  # type: ignore[no-untyped-def]
    with open_store(tmp_path / "store.db") as opened:
        yield opened


def job(sweep: Path, name: str, status: Status, key: str | None = None) -> Path:
    folder = sweep / "jobs" / name
    folder.mkdir(parents=True)
    if key:
        write_model(folder / "result.json", Result(row=make_row(key)))
    record = ExitRecord(status=status, exit_code=0, attempt=1, started_at="2026-12-01T00:00:00Z", ended_at="")
    write_model(folder / "exit.json", record)
    return folder


def test_finished_jobs_are_ingested_and_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    job(tmp_path, "one", "succeeded", "1" * 64)
    job(tmp_path, "two", "invalid", "2" * 64)
    job(tmp_path, "three", "failed")
    (tmp_path / "jobs" / "still-running").mkdir()
    receipt = ingest_sweep(store, tmp_path)
    assert (receipt.added, receipt.findings) == (2, 0)
    assert {row.key[0] for row in store.rows()} == {"1", "2"}
    assert ingest_sweep(store, tmp_path).unchanged == 2


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("result.json", b'{"schema_version": "prony.res'),
        ("result.json", None),
        ("exit.json", b"\0\0"),
        ("exit.json", b"[]"),
    ],
)
def test_a_damaged_folder_becomes_a_finding_and_stops_nothing(
    store: Store, tmp_path: Path, file: str, content: bytes | None
) -> None:
    broken = job(tmp_path, "broken", "succeeded", "1" * 64)
    job(tmp_path, "sound", "succeeded", "2" * 64)
    if content is None:
        (broken / file).unlink()
    else:
        (broken / file).write_bytes(content)
    receipt = ingest_sweep(store, tmp_path)
    assert (receipt.added, receipt.findings) == (1, 1)
    (finding,) = store.findings()
    assert finding.rule == "ingest/damaged" and file in finding.message and "broken" in str(finding.where)


def test_a_directory_without_jobs_gives_nothing(store: Store, tmp_path: Path) -> None:
    assert ingest_sweep(store, tmp_path / "nowhere").added == 0
