"""Masters that the schema takes in another spelling give the rows of the plain one; hostile scalars give an error."""

import json
from pathlib import Path

import pytest

from prony.cli.main import main

PLAIN = """k1:
  image: i
  model: m
  model-prefix: p
  precision: fp8
  framework: sglang
  runner: h200
  multinode: false
  scenarios:
    fixed-seq-len:
    - { isl: 8192, osl: 1024, search-space: [{ tp: 8, conc-list: [4, 16, 32] }] }
"""
RUNNERS = "labels:\n  h200: [h200_0]\nhardware: {}\n"


def rows(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> object:
    (folder / "m.yaml").write_text(text)
    (folder / "runners.yaml").write_text(RUNNERS)
    files = ["--config-files", str(folder / "m.yaml"), "--runner-config", str(folder / "runners.yaml")]
    assert main(["matrix", "full-sweep", *files]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fixed-seq-len", "fixed_seq_len"),
        ("search-space", "search_space"),
        ("conc-list", "conc_list"),
        ("model-prefix", "model_prefix"),
        ("[4, 16, 32]", '["4", "16", "32"]'),
        ("isl: 8192", 'isl: "8192"'),
        ("tp: 8", 'tp: "8"'),
    ],
)
def test_another_spelling_that_the_schema_takes_gives_the_same_rows(
    old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in PLAIN
    assert rows(tmp_path, PLAIN.replace(old, new), capsys) == rows(tmp_path, PLAIN, capsys) != []


@pytest.mark.parametrize("value", ['!!int ""', '!!int "_"', '!!float ""', "!!bool q", "!!timestamp zzz", "!!int ''"])
def test_a_tag_that_its_value_does_not_fit_is_an_error_with_its_line(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.yaml").write_text(PLAIN.replace("tp: 8", f"tp: {value}"))
    (tmp_path / "runners.yaml").write_text(RUNNERS)
    assert main(["lint", str(tmp_path / "m.yaml")]) == 2
    assert "m.yaml:11: " in capsys.readouterr().out
