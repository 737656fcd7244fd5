"""Scores by a policy file."""

from decimal import Decimal
from typing import Any

import pytest

from prony.base.errors import ConfigError
from prony.base.yamldoc import parse_yaml
from prony.spec.compat.priority import annotate, queue_token
from prony.spec.point import AgenticCoding
from prony.spec.policy import Context, Facts, Policy, facts_of_point, read_policy, score
from tests.recipe.points import point

TEXT = """\
version: 1
base-score: 10
adjustments:
  event: {push: 7}
  multi-node: 1
  agentic: 2
  eval-only: 0.1
  precision: {fp4: 3}
  spec-decoding: {mtp: 4}
  framework-prefix: {sg: 5, sg-disagg: 6}
  model-prefix: {m3: 0.2}
labels:
  skip-queue: {name: jump}
  checklist-complete: {names: [done], adjustment: 1.5}
  patchwork: {names: [patch], score: 0.7225, waived-by: [fine]}
"""


def policy(text: str = TEXT) -> Policy:
    return read_policy(parse_yaml(text, "p.yaml"))


def scored(facts: Facts, **context: Any) -> str:
    return str(score(facts, policy(), Context(**context)))


ALL = Facts(
    framework="sg-disagg", precision="fp4", spec_decoding="mtp", model_prefix="m3",
    multinode=True, agentic=True, eval_only=True,
)  # fmt: skip


def test_true_facts_add_up_exactly_and_the_first_framework_prefix_counts() -> None:
    assert scored(ALL) == "25.300"
    assert scored(Facts(framework="sglang", model_prefix="m3.5", precision="fp8")) == "10.000"
    assert scored(Facts(framework="sg"), event="push", labels=frozenset({"done"})) == "23.500"


def test_criteria_let_only_named_facts_count_and_event_and_checklist_stay() -> None:
    assert scored(ALL, criteria=frozenset()) == "10.000"
    assert scored(ALL, criteria=frozenset({"fp4", "sg"})) == "18.000"
    assert scored(ALL, criteria=frozenset({"sg-disagg"})) == "10.000"
    assert scored(ALL, criteria=frozenset(), event="push", labels=frozenset({"done"})) == "18.500"


def test_patchwork_replaces_the_score_half_up_unless_waived() -> None:
    for context in ({"labels": frozenset({"patch"})}, {"criteria": frozenset({"patchwork"})}):
        assert scored(ALL, **context) == "0.723"
    assert scored(ALL, labels=frozenset({"patch", "fine"})) == "25.300"
    assert scored(ALL, labels=frozenset({"fine"}), criteria=frozenset({"patchwork"})) == "10.000"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("version: 1", "version: 2", "p.yaml:1"),
        ("base-score: 10", "base-score: high", "p.yaml:2"),
        ("  agentic: 2", "  agentc: 2", "did you mean 'agentic'?"),
        ("{fp4: 3}", "{fp4: true}", "p.yaml:8"),
    ],
)
def test_a_faulty_policy_is_refused_with_its_line(old: str, new: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policy(TEXT.replace(old, new))
    assert words in str(caught.value)


def test_unknown_criteria_are_named_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=r"no criterion 'nope', 'push'") as caught:
        annotate([], policy(), Context(criteria=frozenset({"push", "nope", "fp4"})))
    assert "sg-disagg" in caught.value.allowed


def test_points_have_the_same_facts_as_rows() -> None:
    made = point(multinode=True, workload=AgenticCoding(), framework="sg", precision="fp4", spec_decoding="mtp")
    assert facts_of_point(made) == Facts(
        framework="sg", precision="fp4", spec_decoding="mtp", model_prefix="model", multinode=True, agentic=True
    )
    assert score(facts_of_point(made), policy(), Context()) == Decimal("25.000")


def test_only_jobs_are_annotated_and_the_input_is_left_as_it_was() -> None:
    job = {"runner": "r", "framework": "sg"}
    payload = {"single_node": {"1k1k": [job]}, "changelog_metadata": {"runner": "no job"}, "note": None}
    context = Context(labels=frozenset({"jump"}))
    made = annotate(payload, policy(), context, "7:1", 42)
    token = queue_token(job, "7:1", ("single_node", "1k1k", "0"))
    assert made["single_node"]["1k1k"] == [{**job, "priority": "15.000", "queue-token": token, "skip-queue-pr": 42}]
    assert made["changelog_metadata"] == {"runner": "no job"} and job == {"runner": "r", "framework": "sg"}
    assert "skip-queue-pr" not in annotate([job], policy(), context)[0]
    assert token != queue_token(job, "7:2", ("single_node", "1k1k", "0"))


@pytest.mark.parametrize("number", ["1e400", "1" * 41, "-.inf"])
def test_a_score_that_no_queue_can_order_is_refused_with_its_line(number: str) -> None:
    with pytest.raises(ConfigError, match=r"p\.yaml:2"):
        read_policy(parse_yaml(f"version: 1\nbase-score: {number}\n", "p.yaml"))
