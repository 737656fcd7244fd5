"""Every real row goes through points and comes back equal; the native matrix gives the points of those rows."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from prony.base.errors import ConfigError
from prony.base.finding import Where
from prony.spec.compat.convert import points_of_row, row_of_points
from prony.spec.evals import EvalMode
from prony.spec.master import MasterConfig, load_master
from prony.spec.matrix import expand
from prony.spec.point import Point
from prony.spec.runners import RunnerLabel, Runners, load_runners

GENERATED: dict[str, EvalMode] = {
    "full_all": "default", "full_evals_only": "default", "full_1k1k": "default", "full_minconc_32": "default",
    "test_all_evals": "all", "test_conc_seq": "default",
}  # fmt: skip


def golden(shared: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(gzip.decompress((shared / f"golden/matrix/{name}.json.gz").read_bytes()))
    return rows


def real_masters(shared: Path) -> tuple[MasterConfig, Runners]:
    """The real files, with a list for each runner that eight real keys name and the reference does not look for."""
    configs = shared / "data/inferencex/configs"
    master = load_master([configs / "nvidia-master.yaml", configs / "amd-master.yaml"])
    declared = load_runners(configs / "runners.yaml")
    names = {label.name for label in declared.labels}
    missing = {item.entry.runner for item in master.keys} - names
    assert len(missing) == 3
    where = Where(file="test")
    added = [RunnerLabel(name=name, nodes=("node",), where=where) for name in sorted(missing)]
    return master, declared.model_copy(update={"labels": (*declared.labels, *added)})


def without_key(points: tuple[Point, ...]) -> list[Point]:
    """Points as rows know them: rows do not say their key, and may stand more than once."""
    return list(dict.fromkeys(point.model_copy(update={"config_key": ""}) for point in points))


@pytest.mark.parametrize("name", GENERATED)
def test_real_rows_come_back_equal(shared: Path, name: str) -> None:
    rows = golden(shared, name)
    assert rows
    for row in rows:
        mode = "none" if "run-eval" not in row else GENERATED[name]
        assert row_of_points(points_of_row(row), mode) == row


def test_the_native_matrix_gives_exactly_the_points_of_the_real_rows(shared: Path) -> None:
    rows = golden(shared, "full_all")
    assert len(rows) == 1820
    theirs = without_key(tuple(point for row in rows for point in points_of_row(row)))
    matrix = expand(*_keys(shared))
    assert without_key(matrix.points) == theirs
    assert sum(point.evaluate for point in matrix.points) >= sum(row["run-eval"] for row in rows)
    assert len(matrix.notes) == 1 and "conc=32" in matrix.notes[0]  # in two lists of one deployment


def _keys(shared: Path) -> tuple[Any, Runners]:
    master, runners = real_masters(shared)
    return master.keys, runners


def single(**changes: Any) -> dict[str, Any]:
    row = {
        "image": "i:1", "model": "org/m", "model-prefix": "m", "precision": "fp8", "framework": "sglang",
        "runner": "h200", "isl": 1024, "osl": 1024, "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1, "conc": 4,
        "max-model-len": 2304, "ep": 1, "dp-attn": False, "spec-decoding": "none", "exp-name": "m_1k1k",
        "disagg": False, "run-eval": False,
    }  # fmt: skip
    return {**row, **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max-model-len": 9}, "max-model-len 9 (expected 2304)"),
        ({"exp-name": "other"}, "exp-name 'other' (expected 'm_1k1k')"),
        ({"new-field": 1}, "new-field 1 (expected None)"),
        ({"conc": "many"}, "concurrency"),
        ({"spec-decoding": "eagle"}, "spec_decoding"),
    ],
)
def test_a_row_that_a_point_cannot_carry_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        points_of_row(single(**changes))
    assert words in str(caught.value)


def test_a_row_with_a_fingerprint_gives_the_same_points() -> None:
    assert points_of_row(single(**{"recipe-fingerprint": "0" * 64})) == points_of_row(single())


def test_a_missing_field_is_named() -> None:
    row = single()
    del row["tp"]
    with pytest.raises(ConfigError, match="'tp' is missing"):
        points_of_row(row)


def test_points_of_different_rows_make_no_row() -> None:
    first, second = points_of_row(single())[0], points_of_row(single(conc=8))[0]
    with pytest.raises(ConfigError, match="holds one concurrency"):
        row_of_points([first, second])
    several = [
        first.model_copy(update={"multinode": True}),
        second.model_copy(update={"multinode": True, "model": "x"}),
    ]
    with pytest.raises(ConfigError, match="differ in more than concurrency"):
        row_of_points(several)
