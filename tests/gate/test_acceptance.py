"""Acceptance lengths that were typed by hand are held against the curves at the draft length that is served."""

from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.cli.main import main
from prony.facts.curves import shipped_curves
from prony.gate.acceptance import check_acceptance

KEY = """key-a:
  model: deepseek-ai/DeepSeek-V4-Pro
  scenarios:
    agentic-coding:
    - search-space:
      - prefill:
          additional-settings:
          - "SYNTHETIC_ACCEPTANCE=true"
          - "SYNTHETIC_ACCEPTANCE_LENGTH=%s"
          - "CONFIG_FILE=recipes/a/launch.yaml"
"""
VLLM = """backend:
  vllm_config:
    decode:
      speculative-config: '{"method":"mtp","num_speculative_tokens":%d}'
"""


def checked(folder: Path, stated: str, launch: str | None) -> list[tuple[str, str, int, str]]:
    (folder / "a").mkdir(exist_ok=True)
    (folder / "m.yaml").write_text(KEY % stated)
    if launch is not None:
        (folder / "a" / "launch.yaml").write_text(launch)
    findings = check_acceptance([folder / "m.yaml"], folder, shipped_curves())
    return [(one.rule, one.severity, one.where.line if one.where else 0, one.allowed) for one in findings]


def test_the_value_of_another_draft_length_is_an_error_with_the_right_one(tmp_path: Path) -> None:
    assert checked(tmp_path, "2.49", VLLM % 3) == []
    assert checked(tmp_path, "2.49", VLLM % 2) == [("acceptance/not-golden", "error", 9, "2.27 (deepseek-v4-pro/mtp)")]


def test_what_a_launch_file_states_itself_is_held_too(tmp_path: Path) -> None:
    launch = "environment:\n  TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS: '%s'\nspeculative_config:\n"
    launch += "  num_nextn_predict_layers: 3\n"
    assert checked(tmp_path, "2.49", launch % "1.49") == []
    assert checked(tmp_path, "2.49", launch % "2.49") == [
        ("acceptance/not-golden", "error", 2, "2.49 (deepseek-v4-pro/mtp)")
    ]
    sglang = "x:\n  SGLANG_SIMULATE_ACC_LEN: '2.4'\n  speculative-num-steps: 3\n  speculative-algorithm: EAGLE\n"
    assert checked(tmp_path, "2.49", sglang) == [("acceptance/not-golden", "error", 2, "2.49 (deepseek-v4-pro/mtp)")]


def test_a_length_whose_draft_length_is_not_at_hand_is_told_and_not_blamed(tmp_path: Path) -> None:
    assert checked(tmp_path, "2.49", None) == [("acceptance/not-checked", "info", 9, "")]
    with pytest.raises(ConfigError, match="SYNTHETIC_ACCEPTANCE_LENGTH=high is no number"):
        checked(tmp_path, "high", None)


def test_in_the_real_files_the_known_violation_is_found_and_nothing_else(shared: Path) -> None:
    """GB200 groups of DeepSeek-V4 pin 2.49, the value of three drafted tokens, while they draft two: 2.27."""
    data = shared / "data" / "inferencex"
    configs = [data / "configs" / f"{name}-master.yaml" for name in ("nvidia", "amd")]
    findings = check_acceptance(configs, data / "recipes" / "srt-slurm-recipes", shipped_curves())
    errors = [one for one in findings if one.severity == "error"]
    keys = sorted(one.message.partition(":")[0] for one in errors)
    family = "dsv4-fp4-gb200-dynamo-vllm-agentic-mtp"
    assert keys == [f"{family}-agg"] * 2 + [f"{family}-disagg"] * 2
    for one in errors:
        assert "2.49 with 2 drafted tokens (+9.7% tokens a step)" in one.message
        assert one.allowed == "2.27 (deepseek-v4-pro/mtp)"


def test_curves_are_the_committed_ones(shared: Path) -> None:
    """Every value of the reference's curves is in ours, found by checkpoint, method and drafter."""
    from prony.base.yamldoc import load_yaml

    folder = shared / "data" / "inferencex" / "golden_al_distribution"
    ours = {tuple(curve.thinking_on.values()): curve for curve in shipped_curves()}
    assert len(ours) == len(list(folder.glob("*.yaml"))) == 9
    for path in folder.glob("*.yaml"):
        (theirs,) = load_yaml(path).values()
        curve = ours[tuple(float(value) for value in theirs["thinking_on"].values())]
        off = theirs.get("thinking_off")
        assert (curve.thinking_off or {}) == {int(key): float(value) for key, value in (off or {}).items()}
        assert path.stem in curve.source


def test_the_commands_tell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["acceptance", "list"]) == 0
    shown = capsys.readouterr()
    assert "glm-5.2/mtp" in shown.out and "falls from 3.16 at 6 to 3.0 at 7" in shown.err
    assert main(["acceptance", "resolve", "amd/GLM-5.2-MXFP4", "--steps", "3"]) == 0
    assert "FORCE_NUM_ACCEPTED_TOKENS=1.99" in capsys.readouterr().out
    assert main(["acceptance", "resolve", "amd/GLM-5.2-MXFP4", "--steps", "9"]) == 2
    assert main(["acceptance", "resolve", "nobody/knows", "--steps", "3"]) == 2
    assert main(["acceptance", "resolve", "amd/GLM-5.2-MXFP4", "--steps", "3", "--method", "magic"]) == 2
