"""Lint on the real files, on broken ones, and against a base."""

import json
from collections import Counter
from pathlib import Path

import pytest

from prony.cli.findings import finding_text
from prony.cli.main import main
from prony.gate.catalogue import RULES
from prony.gate.lint import lint
from prony.gate.policy import load_policy
from tests.gate.faulty import MASTER, RUNNERS
from tests.gate.kit import NEW_KEY, config, real_config, real_repo

POLICY = load_policy()


def test_the_real_files_have_these_faults_and_no_others(shared: Path) -> None:
    report = lint(real_config(shared), POLICY)
    assert Counter((finding.rule, finding.severity) for finding in report.new) == {
        ("runner-unknown", "error"): 8,
        ("deprecated", "error"): 2,
        ("deprecated", "warn"): 8,
        ("row-duplicate", "error"): 1,
        ("row-duplicate", "warn"): 3,
        ("conc-unsorted", "warn"): 5,
        ("conc-steps", "warn"): 6,
        ("runner-no-hardware", "warn"): 4,
    }
    assert report.exit_code == 2


def test_every_real_finding_stands_at_the_line_it_names(shared: Path) -> None:
    lines = {
        path: (shared / "data/inferencex" / path).read_text().splitlines()
        for path in ("configs/nvidia-master.yaml", "configs/amd-master.yaml", "configs/runners.yaml")
    }
    words = {"runner-unknown": "runner:", "runner-no-hardware": ":", "deprecated": "conc-", "row-duplicate": "- "}
    for finding in lint(real_config(shared), POLICY).new:
        assert finding.where is not None and finding.fix
        block = "\n".join(lines[finding.where.file][finding.where.line - 1 :][:3])
        assert words.get(finding.rule, "conc-list") in block, finding


def test_what_the_base_has_does_not_fail_the_head_wherever_it_stands() -> None:
    bad = MASTER.replace("runner: cluster:b200-lab", "runner: cluster:gone")
    moved = "# a comment moves every line\n\n" + bad
    report = lint(config(moved), POLICY, config(bad))
    assert (report.new, len(report.known), report.exit_code) == ((), 1, 0)


def test_a_second_copy_of_an_old_fault_is_new() -> None:
    once = MASTER.replace("conc-list: [4, 8, 16]", "conc-list: [8, 4]")
    entry = "      - {tp: 8, conc-list: [8, 4]}\n"
    twice = once.replace(entry, entry + "      - {tp: 8, ep: 8, conc-list: [8, 4]}\n")
    report = lint(config(twice), POLICY, config(once))
    assert [finding.rule for finding in report.new] == ["conc-unsorted"]
    assert len(report.known) == 1


def test_all_faults_of_a_file_are_told_at_once() -> None:
    master = (
        MASTER.replace("  precision: fp4\n  framework: sglang", "  precison: fp4\n  framework: sglang")
        .replace("  model: org/Kimi-K3-FP4\n", "  model: a\n  model: b\n")
        .replace("tp: 8, spec-decoding", "tp: 16, spec-decoding")
        .replace("DECODE_MTP_SIZE=3", "DECODE_MTP_SIZE=none")
    )
    rules = [finding.rule for finding in lint(config(master), POLICY).new]
    assert rules == ["schema", "schema", "yaml-duplicate-key", "dram-budget", "topology-size", "spec-mtp-size"]


def test_a_broken_runners_file_is_told_and_blames_no_master() -> None:
    runners = RUNNERS.replace("gpus-per-node: 8", "gpus-per-node: -1\n    colour: red")
    report = lint(config(MASTER, runners), POLICY)
    assert {finding.where.file for finding in report.new if finding.where} == {"runners.yaml"}
    assert len(report.new) == 2


@pytest.mark.parametrize(
    ("prefix", "precision", "scenario", "spec", "severity"),
    [
        ("qwen3.5", "bf16", "8k1k", "mtp", "error"),
        ("qwen3.5", "fp8", "8k1k", "none", None),
        ("kimik2.5", "fp4", "agentic", "mtp", "error"),
        ("kimik2.6", "fp4", "8k1k", "none", "warn"),
        ("minimaxm3", "fp4", "8k1k", "mtp", "error"),
        ("minimaxm3", "fp4", "agentic", "mtp", None),
        ("dsv4", "fp4", "agentic", "none", "warn"),
        ("newmodel", "fp4", "agentic", "none", "warn"),
        ("newmodel", "fp4", "1k8k", "none", "error"),
    ],
)
def test_the_policy_refuses_what_is_enacted_and_warns_of_what_is_planned(
    prefix: str, precision: str, scenario: str, spec: str, severity: str | None
) -> None:
    isl, osl = {"8k1k": (8192, 1024), "1k8k": (1024, 8192)}.get(scenario, (0, 0))
    fixed = f"    fixed-seq-len:\n    - {{isl: {isl}, osl: {osl}, search-space: [{{tp: 8, spec-decoding: {spec}, "
    agentic = f"    agentic-coding:\n    - {{search-space: [{{tp: 8, spec-decoding: {spec}, kv-offloading: none, "
    master = (
        f"k:\n  image: i\n  model: m\n  model-prefix: {prefix}\n  runner: cluster:b200-lab\n  precision: {precision}\n"
        f"  framework: vllm\n  multinode: false\n  scenarios:\n{agentic if scenario == 'agentic' else fixed}"
        "conc-list: [8]}]}\n"
    )
    found = [item.severity for item in lint(config(master), POLICY).new if item.rule == "deprecated"]
    assert found == ([severity] if severity else [])


@pytest.mark.parametrize("name", ["x-mtp", "x-MTP", "x_mtp", "x-mtp-v2", "x-mtp2", "x.mtp_v2", "mtp-x"])
def test_mtp_as_a_word_of_a_name_needs_mtp_however_it_is_written(name: str) -> None:
    first = MASTER.partition("\n\n")[0]
    report = lint(config(first.replace("dsr1-fp4-b200-sglang", name) + "\n"), POLICY)
    assert [finding.rule for finding in report.new] == ["spec-suffix"]


@pytest.mark.parametrize("name", ["x-smtp", "x-mtpx", "x"])
def test_mtp_inside_another_word_asks_for_nothing(name: str) -> None:
    first = MASTER.partition("\n\n")[0]
    assert lint(config(first.replace("dsr1-fp4-b200-sglang", name) + "\n"), POLICY).new == ()


@pytest.mark.parametrize("runners", ["labels: [1\n", RUNNERS.replace("gpus-per-node: 8", "gpus-per-node: -1")])
def test_rules_that_need_no_runners_run_beside_a_broken_runners_file(runners: str) -> None:
    master = MASTER.replace("conc-list: [4, 8, 16]", "conc-list: [8, 4, 4]").replace("kimik3\n", "kimi_k3\n")
    found = {finding.rule for finding in lint(config(master, runners), POLICY).new if finding.key}
    assert found == {"conc-duplicate", "conc-unsorted", "exp-name"}


def test_a_runner_like_no_label_is_told_the_most_alike_and_where_all_are(shared: Path) -> None:
    real = (shared / "data/inferencex/configs/runners.yaml").read_text()
    report = lint(config(MASTER.replace("runner: b200\n", "runner: tpu7x\n", 1), real), POLICY)
    (found,) = (finding for finding in report.new if "tpu7x" in finding.message)
    assert found.allowed.startswith("37 labels, the most alike: ") and found.allowed.endswith("of runners.yaml")
    assert len(found.allowed) < 120


def test_lines_are_wrapped_for_a_terminal_and_whole_for_a_program() -> None:
    report = lint(config(MASTER.replace("runner: cluster:b200-lab", "runner: cluster:gone")), POLICY)
    whole = finding_text(report.new[0])
    wrapped = finding_text(report.new[0], 60)
    assert len(whole.splitlines()[0]) > 60 >= max(map(len, wrapped.splitlines()))
    assert wrapped.split() == whole.split()
    assert "cluster:gone" in wrapped and wrapped.splitlines()[1].startswith("    ")


def test_an_mtp_key_needs_mtp_but_other_keys_may_have_it() -> None:
    renamed = MASTER.replace("dsr1-fp4-b200-dynamo-trt-mtp:", "dsr1-fp4-b200-dynamo-trt:")
    assert lint(config(renamed), POLICY).new == ()


def test_a_step_from_1_to_2_doubles_the_load_and_is_fine() -> None:
    master = MASTER.replace("conc-list: [4, 8, 16]", "conc-list: [1, 2, 4, 6]")
    assert lint(config(master), POLICY).new == ()


def test_a_range_that_ends_one_above_its_last_step_warns_too() -> None:
    report = lint(config(MASTER.replace("conc-end: 64", "conc-end: 65")), POLICY)
    assert [(finding.rule, finding.severity) for finding in report.new] == [("conc-steps", "warn")]


def test_every_rule_says_what_it_asks_for_and_where_that_comes_from() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.what and rule.fix and rule.source for rule in RULES)


def test_json_is_machine_readable_and_hides_what_the_base_has(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = real_repo(shared, tmp_path)
    repo.append("configs/amd-master.yaml", "\n" + NEW_KEY.replace("runner: b200", "runner: b2000"))
    monkeypatch.chdir(tmp_path)
    argv = ["lint", "configs/nvidia-master.yaml", "configs/amd-master.yaml", "--base-ref", "main", "--json"]
    assert main(argv) == 2
    (only,) = json.loads(capsys.readouterr().out)["findings"]
    assert (only["rule"], only["key"], only["new"]) == ("runner-unknown", "dsr1-fp4-b200-sglang-new", True)
    assert main([*argv, "--all"]) == 2
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 38
