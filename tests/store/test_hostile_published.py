"""Whatever a published file holds gives rows and findings: no traceback, and a word about all that is odd."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prony.store.published import Import, read_published
from prony.store.store import Store, open_store
from tests.store.test_published import AGG

WHOLE = [0, 1, -1, 64, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 10**18, 10**19, 10**30, -(10**30), 10**300]
REAL = [0.0, -0.0, 5e-324, 1e-300, 1e308, -1e308, 0.5, 1e15, -1.5]
TEXTS = ["", "0", "-1", "1e999", "nan", "inf", "9" * 5000, "\x1b[2J", "\0", "=cmd", "[/red]", "true", "not a date"]
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.sampled_from([*WHOLE, *REAL, *TEXTS]) | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def published(shared: Path) -> list[dict[str, Any]]:
    rows = orjson.loads((shared / "data/published/app_fixtures/benchmarks.json").read_bytes())
    return [AGG, *rows[:: len(rows) // 12]]


@pytest.fixture(scope="module")
def kept() -> Iterator[Store]:
    with open_store(":memory:") as store:
        yield store
        assert store.select().unreadable == ()


def imported(folder: Path, rows: object) -> Import:
    path = folder / "rows.json"
    path.write_text(json.dumps(rows))
    return read_published(path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_json_in_any_field_gives_rows_and_findings(
    tmp_path: Path, published: list[dict[str, Any]], kept: Store, data: st.DataObject
) -> None:
    row = json.loads(json.dumps(data.draw(st.sampled_from(published))))
    for _ in range(data.draw(st.integers(1, 3))):
        inside = isinstance(row.get("metrics"), dict) and row["metrics"] and data.draw(st.booleans())
        where = row["metrics"] if inside else row
        where[data.draw(st.sampled_from(sorted(where)))] = data.draw(JSON)
    found = imported(tmp_path, [AGG, row])
    rejected = [one for one in found.findings if one.rule == "import/rejected"]
    assert len(found.rows) + len(rejected) == 2
    receipt = kept.add(found.rows, "x", found.findings)
    assert receipt.added + receipt.changed + receipt.unchanged == len(found.rows)


@pytest.mark.parametrize(
    "change",
    [
        {"conc": 10**30},
        {"conc": 10**18},
        {"isl": 10**19},
        {"tp": 10**12},
        {"tp": 10**6, "pp": 10**6},
        {"ep": -3},
        {"model": "a\0b"},
        {"conc": [4]},
    ],
)
def test_a_setting_that_cannot_be_rejects_its_row_alone_and_keeps_it_raw(
    tmp_path: Path, change: dict[str, object]
) -> None:
    found = imported(tmp_path, [AGG, {**AGG, **change}])
    assert len(found.rows) == 1
    (rejected,) = [one for one in found.findings if one.rule == "import/rejected"]
    assert rejected.severity == "error" and next(iter(change)) in rejected.evidence


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"tput_per_gpu": 0}, "row/nothing-served"),
        ({"tput_per_gpu": 1e308}, "row/impossible-value"),
        ({"tput_per_gpu": -1}, "row/value-left-out"),
        ({"mean_ttft": -0.2}, "row/value-left-out"),
        ({name: AGG[name] * 1000 for name in ("mean_ttft", "mean_tpot", "mean_e2el")}, "row/littles-law"),  # type: ignore[operator]
        ({"mean_ttft": 200.0}, "row/latency-parts"),
    ],
)
def test_a_number_that_cannot_be_makes_its_row_invalid(tmp_path: Path, change: dict[str, object], rule: str) -> None:
    (row,) = imported(tmp_path, {**AGG, **change}).rows
    assert not row.valid
    assert rule in {one.rule for one in row.verdicts if one.severity == "invalid"}


def test_a_date_that_is_none_is_told_and_not_shown_as_one(tmp_path: Path) -> None:
    (row,) = imported(tmp_path, {**AGG, "date": "not a date"}).rows
    assert row.measured_at == "" and row.valid
    assert [(one.rule, "not a date" in one.message) for one in row.verdicts] == [("row/date", True)]


def test_the_json_words_nan_and_infinity_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([{**AGG, "mean_ttft": float("nan")}]))
    with pytest.raises(Exception, match="not JSON"):
        read_published(path)
