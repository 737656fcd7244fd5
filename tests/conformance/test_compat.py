"""The reference's command lines on the real files: equal rows, order and exit codes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from prony.base.errors import ConfigError
from prony.base.yamldoc import YamlMap, parse_yaml
from prony.cli.main import main
from prony.spec.master import read_master

SHARED = Path(__file__).resolve().parents[3] / "shared"
INDEX = SHARED / "golden/matrix/index.json"
CASES = json.loads(INDEX.read_text()) if INDEX.exists() else []
SCHEMA = SHARED / "golden/matrix/schema_cases.json"
SCHEMA_CASES = json.loads(SCHEMA.read_text()) if SCHEMA.exists() else []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_command_line_gives_the_reference_rows(
    shared: Path, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shared / "data/inferencex")
    try:
        code = main(["matrix", *case["args"]])
    except SystemExit as stop:
        code = int(stop.code or 0)
    out = capsys.readouterr().out
    assert code == case["exit"]
    if code == 0:
        golden = gzip.decompress((shared / f"golden/matrix/{case['name']}.json.gz").read_bytes())
        rows = json.loads(out)
        assert len(rows) == case["rows"]
        assert rows == json.loads(golden)


def test_all_cases_are_there(shared: Path) -> None:
    assert len(CASES) == 17 and len(SCHEMA_CASES) == 24


@pytest.mark.parametrize("case", SCHEMA_CASES, ids=lambda case: case["name"])
def test_an_entry_is_accepted_or_refused_as_there(case: dict[str, Any]) -> None:
    document = parse_yaml(json.dumps({"k": case["entry"]}), "m.yaml")
    assert isinstance(document, YamlMap)
    if case["ok"]:
        assert read_master(document)[0].key == "k"
    else:
        with pytest.raises(ConfigError):
            read_master(document)
