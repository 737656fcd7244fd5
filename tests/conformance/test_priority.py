"""Scores and queue tokens as the reference's tool gives them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from prony.cli.main import main

SHARED = Path(__file__).resolve().parents[3] / "shared"
INDEX = SHARED / "golden/priority/index.json"
CASES: dict[str, dict[str, Any]] = json.loads(INDEX.read_text()) if INDEX.exists() else {}


def test_all_cases_are_there(shared: Path) -> None:
    assert len(CASES) == 11
    assert [path.stem for path in sorted((shared / "golden/priority").glob("*.json"))] == sorted(
        [*(name for name, case in CASES.items() if case["exit"] == 0), "index", "input"]
    )


@pytest.mark.parametrize("name", CASES)
def test_rows_are_annotated_as_there(shared: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case, golden = CASES[name], shared / "golden/priority"
    policy = shared / "data/inferencex/configs/ci-priority.yaml"
    given = ["--policy", str(policy), "--input", str(golden / "input.json"), *case["args"]]
    code = main(["matrix", "priority", *given])
    printed = capsys.readouterr()
    assert code == case["exit"]
    if code:
        # The sentence is ours; what it names is the same.
        assert re.findall(r"'([^']*)'", case["err"][0])[0] in printed.err
        return
    assert printed.out.encode() == (golden / f"{name}.json").read_bytes().rstrip(b"\n") + b"\n"
    rows = json.loads(printed.out)
    assert [row["priority"] for row in rows[: len(case["scores"])]] == case["scores"]
