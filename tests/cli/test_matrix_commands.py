"""`prony matrix list`, `priority` and `canary` on small configs."""

import json
from pathlib import Path

import pytest

from prony.base.errors import PlanError
from prony.base.yamldoc import parse_yaml
from prony.cli.inputs import runnable
from prony.cli.main import main
from prony.spec.master import read_master
from prony.spec.matrix import Matrix, expand
from prony.spec.runners import read_runners

FIXED = """\
fixed:
  image: i:1
  model: org/m
  model-prefix: m
  precision: fp4
  framework: sglang
  runner: cluster:h200-x
  multinode: false
  scenarios:
    fixed-seq-len:
    - { isl: 1024, osl: 1024, search-space: [{ tp: 8, conc-list: [8, 4, 4] }] }
"""
AGENTIC = """\
agentic:
  image: i:2
  model: org/m
  model-prefix: m
  precision: fp8
  framework: vllm
  runner: cluster:h200-x
  multinode: true
  scenarios:
    agentic-coding:
    - search-space:
      - { worker: { num-worker: 1, tp: 16, ep: 1, dp-attn: false }, num-nodes: 2, conc-list: [2, 1] }
"""
RUNNERS = "labels: {'cluster:h200-x': [h200-x_0]}\n"
POLICY = "version: 1\nbase-score: 1\nadjustments: {precision: {fp4: 0.5}, agentic: 2}\n"


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "runners.yaml").write_text(RUNNERS)
    (tmp_path / "policy.yaml").write_text(POLICY)
    path = tmp_path / "master.yaml"
    path.write_text(FIXED + AGENTIC)
    return str(path)


def test_the_list_shows_agentic_and_several_nodes_and_tells_of_doubles(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["matrix", "list", config]) == 0
    printed = capsys.readouterr()
    agentic = next(line for line in printed.out.splitlines() if line.startswith("agentic"))
    assert "TP16" in agentic and agentic.rstrip().endswith("2 1")
    assert "4 points" in printed.out
    assert "note: fixed conc=4 (TP8) stands 2 times" in printed.err


def test_filters_of_the_list_reach_the_matrix(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    filters = ["--scenarios", "agentic-coding", "--nodes", "h200-x_*", "--max-conc", "1"]
    assert main(["matrix", "list", config, "--json", *filters]) == 0
    printed = capsys.readouterr()
    (point,) = map(json.loads, printed.out.splitlines())
    assert (point["config_key"], point["runner"], point["concurrency"]) == ("agentic", "h200-x_0", 1)
    assert len(point["digest"]) == 64 and point["topology"]["pools"][0]["nodes"] == 2
    assert "not listed: fixed: no points" in printed.err


def test_points_are_scored_highest_first(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    policy = str(Path(config).parent / "policy.yaml")
    assert main(["matrix", "priority", config, "--policy", policy, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["priority"], one["config_key"]) for one in found] == [
        ("3.000", "agentic"), ("3.000", "agentic"), ("1.500", "fixed"), ("1.500", "fixed"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--labels-json", "{", "--labels-json: not JSON"),
        ("--labels-json", "[1]", "--labels-json: not a list of names"),
        ("--labels-json", '[{"a": 1, "a": 2}]', "'a' stands twice in one object"),
        ("--criteria-json", '["nope"]', "the priority policy has no criterion 'nope'"),
        ("--input", "none.json", "none.json: cannot be read"),
        ("--policy", "none.yaml", "none.yaml: no such file"),
    ],
)
def test_what_is_wrong_with_rows_ends_with_1_and_a_message(
    config: str, option: str, value: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = Path(config).parent / "rows.json"
    rows.write_text("[]")
    given = {"--policy": str(Path(config).parent / "policy.yaml"), "--input": str(rows), option: value}
    assert main(["matrix", "priority", *(word for pair in given.items() for word in pair)]) == 1
    assert words in capsys.readouterr().err


def test_every_group_has_a_canary_and_the_reference_one_for_all(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["matrix", "canary", config, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["point"]["config_key"], one["point"]["concurrency"]) for one in found] == [
        ("fixed", 4),
        ("agentic", 1),
    ]
    assert main(["matrix", "canary", config, "--reference-canary"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["conc"], row["exp-name"]) == (4, "m_1k1k")
    assert main(["matrix", "canary", config, "--keys", "agentic", "--reference-canary"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "null\n" and "no canary" in printed.err


def matrix(text: str) -> Matrix:
    return expand(read_master(parse_yaml(text, "m.yaml")), read_runners(parse_yaml(RUNNERS, "r.yaml")))


def test_what_cannot_be_loaded_yet_is_left_out_of_a_run_and_told() -> None:
    kept = runnable(matrix(FIXED + AGENTIC))
    assert [point.config_key for point in kept.points] == ["fixed", "fixed"]
    assert kept.left_out == ("agentic: 2 agentic points (no replay yet)",)
    with pytest.raises(PlanError, match="nothing to run: agentic: 2 agentic points"):
        runnable(matrix(AGENTIC))
