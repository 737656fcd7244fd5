"""`prony plan check` as a user meets it."""

import json
from pathlib import Path

import pytest

from prony.cli.main import main
from tests.plan.test_feasibility import OLD_SPACE, RUNNERS, written


def write(folder: Path, *keys: str) -> str:
    (folder / "runners.yaml").write_text(RUNNERS)
    master = folder / "master.yaml"
    master.write_text("\n".join(keys))
    return str(master)


def test_refused_points_are_shown_with_rule_evidence_and_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "check", write(tmp_path, *OLD_SPACE)]) == 2
    told = capsys.readouterr().out
    assert "19 points: 13 OK, 6 IMPOSSIBLE" in told
    assert "master.yaml:1: error [aiter-bpreshuffle-n64]" in told
    assert "33484262630" in told and "what to do: lower TP to 2" in told


def test_points_that_are_ok_are_counted_and_listed_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, written("tp: 2, conc-start: 4, conc-end: 16"))
    assert main(["plan", "check", config]) == 0
    assert capsys.readouterr().out == "3 points: 3 OK\n"
    assert main(["plan", "check", config, "--all"]) == 0
    assert "4 8 16" in capsys.readouterr().out


def test_json_holds_every_point_and_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "check", write(tmp_path, *OLD_SPACE), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["exit_code"] == 2 and len(told["points"]) == 19
    refused = [one for one in told["points"] if one["status"] == "IMPOSSIBLE"]
    assert {one["findings"][0]["rule"] for one in refused} == {"aiter-bpreshuffle-n64"}


def test_keys_without_a_recipe_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write(tmp_path, written("tp: 2, conc-list: [4]", key="my-own-key"))
    assert main(["plan", "check", config]) == 0
    assert "note [missing-recipe] 1 point of my-own-key" in capsys.readouterr().out


def test_rules_are_listed_and_a_config_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "check", "--rules"]) == 0
    assert "aiter-bpreshuffle-n64 (impossible)" in capsys.readouterr().out
    assert main(["plan", "check"]) == 2
    assert "no CONFIG was named" in capsys.readouterr().err
