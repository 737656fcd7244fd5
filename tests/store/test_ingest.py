from pathlib import Path

import pytest

from prony.base.model import write_model
from prony.measure.result import Measurement, Result, Row
from prony.plan.job import Job
from prony.run.folder import ExitRecord, Status
from prony.store.ingest import ingest_sweep
from prony.store.store import Store, open_store
from tests.run.kit import make_deployment, make_job
from tests.store.rows import make_row, measured


@pytest.fixture
def store(tmp_path: Path):  # type: ignore[no-untyped-def]
    with open_store(tmp_path / "store.db") as opened:
        yield opened


def job(sweep: Path, concurrency: int, status: Status, /, **changes: object) -> Path:
    """Make a job folder with the result that its job would give."""
    made = make_job(make_deployment(), concurrency)
    folder = sweep / "jobs" / made.key[:16]
    folder.mkdir(parents=True)
    write_model(folder / "job.json", made)
    if status in ("succeeded", "invalid"):
        write_model(folder / "result.json", Result(row=row_of(made, **changes)))
    record = ExitRecord(status=status, exit_code=0, attempt=1, started_at="2026-12-01T00:00:00Z", ended_at="")
    write_model(folder / "exit.json", record)
    return folder


def row_of(made: Job, /, **changes: object) -> Row:
    point = made.point
    same = ("config_key", "model", "model_prefix", "precision", "framework", "concurrency", "topology", "image")
    fields = {name: getattr(point, name) for name in same}
    row = make_row(made.key, runner=point.runner, isl=8, osl=4, hardware="cpu", **fields)
    return row.model_copy(update=changes)


def test_finished_jobs_are_ingested_and_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    job(tmp_path, 1, "succeeded")
    job(tmp_path, 2, "invalid")
    job(tmp_path, 3, "failed")
    (tmp_path / "jobs" / "still-running").mkdir()
    receipt = ingest_sweep(store, tmp_path)
    assert (receipt.added, receipt.findings) == (2, 0)
    assert {row.concurrency for row in store.rows()} == {1, 2}
    assert ingest_sweep(store, tmp_path).unchanged == 2


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("result.json", b'{"schema_version": "prony.res'),
        ("result.json", None),
        ("exit.json", b"\0\0"),
        ("exit.json", b"[]"),
        ("job.json", b"{}"),
        ("job.json", None),
    ],
)
def test_a_damaged_folder_becomes_a_finding_and_stops_nothing(
    store: Store, tmp_path: Path, file: str, content: bytes | None
) -> None:
    broken = job(tmp_path, 1, "succeeded")
    job(tmp_path, 2, "succeeded")
    if content is None:
        (broken / file).unlink()
    else:
        (broken / file).write_bytes(content)
    receipt = ingest_sweep(store, tmp_path)
    assert (receipt.added, receipt.findings) == (1, 1)
    (finding,) = store.findings()
    assert finding.rule == "ingest/damaged" and file in finding.message and broken.name in str(finding.where)


def test_a_directory_without_jobs_gives_nothing(store: Store, tmp_path: Path) -> None:
    assert ingest_sweep(store, tmp_path / "nowhere").added == 0


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400])
def test_a_number_that_is_none_is_refused_at_the_border_and_the_others_are_read(
    store: Store, tmp_path: Path, number: str
) -> None:
    broken = job(tmp_path, 1, "succeeded") / "result.json"
    job(tmp_path, 2, "succeeded")
    good = broken.read_bytes()
    broken.write_bytes(good.replace(b"123.4", number.encode()))
    ingest_sweep(store, tmp_path)
    assert [row.concurrency for row in store.rows()] == [2]
    assert [found.rule for found in store.findings()] == ["ingest/damaged"]
    broken.write_bytes(good)
    assert ingest_sweep(store, tmp_path).added == 1
    assert len(store.rows()) == 2


def test_a_whole_number_of_more_than_64_bits_is_refused(store: Store, tmp_path: Path) -> None:
    path = job(tmp_path, 1, "succeeded") / "result.json"
    path.write_bytes(path.read_bytes().replace(b'"n": 8', b'"n": 1' + b"0" * 30))
    assert ingest_sweep(store, tmp_path).findings == 1 and store.rows() == ()


@pytest.mark.parametrize(
    "change",
    [
        {"key": "f" * 64},
        {"origin": "imported"},
        {"concurrency": 64},
        {"model": "another/model"},
        {"simulated": True},
        {"repeat": 3},
        {"isl": 1024},
    ],
)
def test_a_result_that_is_not_its_jobs_is_not_imported(store: Store, tmp_path: Path, change: dict[str, object]) -> None:
    folder = job(tmp_path, 1, "succeeded", **change)
    ingest_sweep(store, tmp_path)
    (finding,) = store.findings()
    assert store.rows() == () and finding.severity == "error"
    assert next(iter(change)) in finding.message and folder.name in finding.message


def test_a_folder_under_another_name_is_not_imported(store: Store, tmp_path: Path) -> None:
    folder = job(tmp_path, 1, "succeeded")
    folder.rename(folder.with_name("0" * 16))
    ingest_sweep(store, tmp_path)
    assert store.rows() == () and "moved" in store.findings()[0].message


@pytest.mark.parametrize("value", [-123.4, 1e308])
def test_numbers_changed_in_a_result_are_judged_again(store: Store, tmp_path: Path, value: float) -> None:
    job(tmp_path, 1, "succeeded", measurements=measured(value))
    own = (Measurement(metric="tput", stat="value", value=100.0), *measured(50.0))
    job(tmp_path, 2, "succeeded", measurements=own)
    ingest_sweep(store, tmp_path)
    assert [row.valid for row in store.rows()] == [False, False]
    assert [row.verdicts[0].rule for row in sorted(store.rows(), key=lambda row: row.concurrency)] == [
        "row/impossible-value",
        "row/own-rates",
    ]


def test_good_content_that_comes_after_bad_is_shown_again(store: Store, tmp_path: Path) -> None:
    path = job(tmp_path, 1, "succeeded") / "result.json"
    good = path.read_bytes()
    ingest_sweep(store, tmp_path)
    path.write_bytes(good.replace(b"123.4", b"-123.4"))
    ingest_sweep(store, tmp_path)
    assert not store.rows()[0].valid
    path.write_bytes(good)
    assert ingest_sweep(store, tmp_path).changed == 1
    assert store.rows()[0].valid and len(store.history(store.rows()[0].key)) == 2
    assert ingest_sweep(store, tmp_path).unchanged == 1
