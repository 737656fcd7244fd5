"""Findings that exist at the base never fail the head, and what is new always does."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.gate.document import LintFinding, Source, read_config
from prony.gate.lint import LintReport, lint
from prony.gate.policy import load_policy
from tests.gate.faulty import MASTER, RUNNERS
from tests.gate.kit import config

POLICY = load_policy()
FIRST, _, REST = MASTER.partition("\n\n")
LIST = "conc-list: [4, 8, 16]"


def compare(base: str, head: str, base_runners: str = RUNNERS, runners: str = RUNNERS) -> LintReport:
    """Lint one master text against another."""
    return lint(config(head, runners), POLICY, config(base, base_runners))


def rules(findings: tuple[LintFinding, ...]) -> list[str]:
    """Return the rules of findings, sorted."""
    return sorted(finding.rule for finding in findings)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[4, 4]", "[4, 4, 8]"),
        ("[8, 4]", "[8, 4, 16]"),
        ("[16, 4]", "[16, 32, 4]"),
        ("[4, 5]", "[4, 5, 8]"),
        ("[4, 4, 8, 8]", "[4, 4, 8]"),
    ],
)
def test_a_list_that_grows_or_shrinks_keeps_its_old_fault(before: str, after: str) -> None:
    base, head = (MASTER.replace(LIST, f"conc-list: {values}") for values in (before, after))
    report = compare(base, head)
    assert report.new == () and report.known


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("[4, 4]", "[4, 4, 4]", "conc-duplicate"),
        ("[4, 4]", "[4, 4, 8, 8]", "conc-duplicate"),
        ("[8, 4]", "[8, 4, 2]", "conc-unsorted"),
        ("[4, 5]", "[4, 5, 6]", "conc-steps"),
    ],
)
def test_a_list_with_an_old_fault_that_gets_another_is_new(before: str, after: str, rule: str) -> None:
    base, head = (MASTER.replace(LIST, f"conc-list: {values}") for values in (before, after))
    assert rules(compare(base, head).new) == [rule]


def test_an_entry_with_an_old_fault_may_move_and_change_beside_it() -> None:
    entry = "      - {tp: 8, conc-list: [8, 4]}\n"
    base = MASTER.replace("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8, conc-list: [8, 4]}")
    for edit in ("      - {tp: 2, conc-list: [4]}\n" + entry, entry.replace("tp: 8", "tp: 4, ep: 1")):
        report = compare(base, base.replace(entry, edit))
        assert (rules(report.new), rules(report.known)) == ([], ["conc-unsorted"])


def test_an_old_fault_that_is_mended_in_one_entry_and_made_in_another_is_new() -> None:
    base = MASTER.replace("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8, conc-list: [8, 4]}")
    head = base.replace("{tp: 8, conc-list: [8, 4]}", "{tp: 8, conc-list: [4, 8]}\n      - {tp: 2, conc-list: [8, 4]}")
    assert rules(compare(base, head).new) == ["conc-unsorted"]


HIDING = [("  image: lmsysorg/sglang:v0.5.16\n", ""), ("ep: 4, conc-start", "epp: 4, conc-start"), ("tp: 4,", "tp: x,")]


@pytest.mark.parametrize("hiding", HIDING, ids=["missing", "unknown", "wrong"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LIST, "conc-list: [8, 4]"),
        ("runner: b200\n", "runner: b2000\n"),
        ("model-prefix: dsr1", "model-prefix: ds_r1"),
        ("isl: 8192", "isl: 4096"),
        ("isl: 8192", "isl: 1024"),
        ("{tp: 8, conc-list", "{tp: 16, conc-list"),
        ("dsr1-fp4-b200-sglang:", "dsr1-fp4-b200-sglang-mtp:"),
    ],
)
def test_a_repaired_schema_fault_uncovers_old_findings_and_no_new_ones(
    hiding: tuple[str, str], old: str, new: str
) -> None:
    head = FIRST.replace(old, new) + "\n"
    report = compare(head.replace(*hiding), head)
    assert report.new == () and report.known


@pytest.mark.parametrize("hiding", HIDING, ids=["missing", "unknown", "wrong"])
@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (LIST, "conc-list: [8, 4]", "conc-unsorted"),
        ("runner: b200\n", "runner: b2000\n", "runner-unknown"),
        ("{tp: 8, conc-list", "{tp: 16, conc-list", "topology-size"),
    ],
)
def test_a_fault_made_while_a_schema_fault_is_repaired_is_new(
    hiding: tuple[str, str], old: str, new: str, rule: str
) -> None:
    assert rules(compare(FIRST.replace(*hiding) + "\n", FIRST.replace(old, new) + "\n").new) == [rule]


def test_a_value_that_was_no_number_and_is_now_too_large_is_new() -> None:
    base = MASTER.replace("tp: 8, conc-list", "tp: x, conc-list")
    assert rules(compare(base, base.replace("tp: x", "tp: 16")).new) == ["topology-size"]


def test_a_schema_fault_that_hid_another_one_uncovers_an_old_finding() -> None:
    both = MASTER.replace("  runner: cluster:b200-lab", "  runner: b200").replace("  image: vllm", "  imag: vllm")
    report = compare(both, both.replace("  imag: vllm", "  image: vllm"))
    assert (rules(report.new), rules(report.known)) == ([], ["schema"])
    sound = MASTER.replace("  image: vllm", "  imag: vllm")
    head = MASTER.replace("  runner: cluster:b200-lab", "  runner: b200")
    assert rules(compare(sound, head).new) == ["schema"]


def test_a_label_without_hardware_is_old_though_the_key_that_uses_it_was_at_fault() -> None:
    runners = RUNNERS.replace("  b200:\n  - b200-lab_0\n", "  b200:\n  - b200-old_0\n")
    report = compare(FIRST.replace("  image:", "  imag:") + "\n", FIRST + "\n", runners, runners)
    assert (rules(report.new), rules(report.known)) == ([], ["runner-no-hardware"])
    more = runners.replace("  - b200-old_0\n", "  - b200-old_0\n  - b200-old_1\n")
    assert rules(compare(FIRST + "\n", FIRST + "\n", runners, more).new) == ["runner-no-hardware"]


def test_a_renamed_key_takes_its_old_findings_along() -> None:
    base = MASTER.replace("runner: b200\n", "runner: b2\n", 1)
    base = base.replace(LIST, "conc-list: [8, 4]")
    report = compare(base, base.replace("dsr1-fp4-b200-sglang:", "dsr1-fp4-b200-sglang-v2:"))
    assert (rules(report.new), rules(report.known)) == ([], ["conc-unsorted", "runner-unknown"])


def test_a_renamed_key_with_a_schema_fault_and_a_name_that_says_mtp_are_told_apart() -> None:
    base = MASTER.replace("tp: 8, conc-list", "tp: 0, conc-list")
    assert compare(base, base.replace("b200-sglang:", "b200-sglang-v2:")).new == ()
    assert rules(compare(MASTER, MASTER.replace("b200-sglang:", "b200-sglang-mtp:")).new) == ["spec-suffix"]


def test_a_copy_of_a_faulty_key_under_a_second_name_is_new() -> None:
    base = MASTER.replace("runner: cluster:b200-lab", "runner: cluster:gone")
    copied = base + base.split("\n\n")[1].replace("kimik3-fp4", "kimik3-copy-fp4") + "\n"
    assert rules(compare(base, copied).new) == ["row-duplicate", "runner-unknown"]


def test_two_keys_that_ask_for_the_same_point_may_swap_places() -> None:
    other = FIRST.replace("b200-sglang:", "b200-sglang-too:")
    report = compare(f"{FIRST}\n{other}\n", f"{other}\n{FIRST}\n")
    assert report.new == () and set(rules(report.known)) == {"row-duplicate"}


def test_two_keys_that_ask_for_the_same_point_may_get_the_same_new_image() -> None:
    both = f"{FIRST}\n{FIRST.replace('b200-sglang:', 'b200-sglang-too:')}\n"
    report = compare(both, both.replace("sglang:v0.5.16", "sglang:v0.5.17"))
    assert (rules(report.new), rules(report.known)) == ([], ["row-duplicate", "row-duplicate"])
    third = both + FIRST.replace("b200-sglang:", "b200-sglang-third:") + "\n"
    assert rules(compare(both, third).new) == ["row-duplicate", "row-duplicate"]


def test_two_keys_of_one_name_may_swap_places_in_a_file_and_between_files() -> None:
    other = FIRST.replace("runner: b200", "runner: b2000").replace(LIST, "conc-list: [8, 4]")
    report = compare(f"{other}\n{FIRST}\n", f"{FIRST}\n{other}\n")
    assert (rules(report.new), len(report.known)) == ([], 3)
    sources = [[Source("a", a), Source("b", b)] for a, b in ((FIRST, other), (other, FIRST))]
    files = [read_config(masters, Source("r", RUNNERS)) for masters in sources]
    assert lint(files[1], POLICY, files[0]).new == ()


def test_a_broken_master_at_the_base_is_told_and_its_findings_count_as_new() -> None:
    head = MASTER.replace(LIST, "conc-list: [4, 4]")
    report = compare(head + "broken: [1\n", head)
    assert [(finding.rule, finding.severity) for finding in report.new] == [
        ("conc-duplicate", "error"),
        ("base-unreadable", "info"),
    ]
    assert re.search(
        r"base of this file cannot be read \(master.yaml:\d+: not YAML.*every finding", report.new[1].message
    )
    assert compare(head + "broken: [1\n", MASTER).new == ()


@pytest.mark.parametrize("broken", ["labels: [1\n", RUNNERS.replace("gpus-per-node: 8", "gpus-per-node: -1")])
def test_a_broken_runners_file_at_the_base_makes_no_old_finding_new(broken: str) -> None:
    head = MASTER.replace("runner: cluster:b200-lab", "runner: cluster:gone").replace(LIST, "conc-list: [4, 4]")
    report = compare(head, head, base_runners=broken)
    assert rules(report.known) == ["conc-duplicate", "runner-unknown"]
    assert [(finding.rule, finding.severity) for finding in report.new] == [("base-unreadable", "info")]
    assert report.exit_code == 0 and "judged by the runners file of the head" in report.new[0].message


def test_a_label_that_the_head_removes_makes_every_user_of_it_new() -> None:
    gone = RUNNERS.replace("  b200:\n  - b200-lab_0\n  - b200-lab_1\n", "")
    assert rules(compare(MASTER, MASTER, runners=gone).new) == ["runner-unknown", "runner-unknown"]


Edit = Callable[[dict[str, Any]], object]
_OLD = yaml.safe_load(
    MASTER.replace(LIST, "conc-list: [8, 4, 4]")
    .replace("model: org/Kimi-K3-FP4", "modle: x")
    .replace("isl: 8192", "isl: 4096", 1)
)
for _number in range(6):
    _OLD[f"more-{_number}"] = {**yaml.safe_load(FIRST)["dsr1-fp4-b200-sglang"], "image": f"i:{_number}"}


def _harmless(content: dict[str, Any], dice: random.Random, number: int) -> None:
    name = dice.choice([name for name in content if not name.startswith("renamed")])
    what = dice.choice(["image", "rename", "grow", "move", "prepend"])
    if what == "image":
        content[name]["image"] = f"other:{number}"
    elif what == "rename" and content[name] == _OLD[name]:
        content[f"renamed-{number}" + "-mtp" * ("mtp" in name)] = content.pop(name)
    elif what == "move":
        content[name] = content.pop(name)
    elif what in ("grow", "prepend") and "fixed-seq-len" in content[name]["scenarios"] and "mtp" not in name:
        if what != "prepend":
            _searches(content, name)[-1]["conc-list"].append(1000 + 10 * number)
        else:
            _searches(content, name).insert(0, {"tp": 2, "conc-list": [2000 + 10 * number]})


def _searches(content: dict[str, Any], name: str) -> Any:
    return content[name]["scenarios"]["fixed-seq-len"][0]["search-space"]


FAULTS: dict[str, Edit] = {
    "runner-unknown": lambda content: content["fresh"].update(runner="b2000"),
    "exp-name": lambda content: content["fresh"].update({"model-prefix": "a_b"}),
    "schema": lambda content: content["fresh"].pop("image"),
    "conc-duplicate": lambda content: _searches(content, "fresh").append({"tp": 1, "conc-list": [4, 4]}),
    "conc-unsorted": lambda content: _searches(content, "fresh").append({"tp": 1, "conc-list": [8, 4]}),
    "conc-steps": lambda content: _searches(content, "fresh").append({"tp": 1, "conc-list": [4, 5]}),
    "topology-size": lambda content: _searches(content, "fresh").append({"tp": 16, "conc-list": [4]}),
}


def _dump(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False)


def _edited(dice: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a base with faults, and it with edits that make none."""
    base = yaml.safe_load(_dump(_OLD))
    base["fresh"] = {**yaml.safe_load(FIRST)["dsr1-fp4-b200-sglang"], "model": "another"}
    head = yaml.safe_load(_dump(base))
    edited = {name: value for name, value in head.items() if name != "fresh"}
    for number in range(dice.randrange(4)):
        _harmless(edited, dice, number)
    return base, {**edited, "fresh": head["fresh"]}


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_edits_that_make_no_fault_never_make_an_old_one_new(seed: int) -> None:
    base, head = (_dump(content) for content in _edited(random.Random(seed)))
    assert compare(head, head).new == ()
    report = compare(base, head)
    assert report.new == (), (base, head)
    assert report.known


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(sorted(FAULTS)))
def test_one_new_fault_among_such_edits_is_the_only_new_finding(seed: int, rule: str) -> None:
    base, head = _edited(random.Random(seed))
    FAULTS[rule](head)
    assert rules(compare(_dump(base), _dump(head)).new) == [rule]
