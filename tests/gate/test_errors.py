"""Faulty inputs are refused with the words that the reference page shows."""

import subprocess
from pathlib import Path

import pytest

from prony.cli.main import main
from tests.gate.faulty import FAULTY, FILES, Faulty


@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.what)
def test_a_faulty_input_is_told_with_these_words(
    case: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    for name, text in case.inputs.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    code = main(list(case.argv))
    captured = capsys.readouterr()
    said = (captured.out or captured.err).replace(str(tmp_path.resolve()), ".").strip()
    assert said == case.said
    assert code == case.exit_code


def test_every_word_names_a_place_and_the_next_step() -> None:
    assert len(FAULTY) >= 30
    for case in FAULTY:
        assert "what to do: " in case.said, case.what
        assert case.exit_code == (2 if "error [" in case.said or case.said.startswith("prony: ") else 0), case.what


def test_the_files_without_a_fault_have_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["lint", "master.yaml"]) == 0
    assert capsys.readouterr().out == ""
