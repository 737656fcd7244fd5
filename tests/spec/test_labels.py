"""What labels make of a sweep."""

from typing import Any

import pytest

from prony.base.errors import ConfigError
from prony.spec.labels import KNOWN, PRIMARY, TRIGGERS, Event, decide

FULL = "full-sweep-enabled"


def sync(**changes: Any) -> Event:
    values: dict[str, Any] = {"trigger": "synchronize", **changes}
    return Event(**values)


@pytest.mark.parametrize(
    ("label", "trim", "canary", "fail_fast", "reusable"),
    [
        ("sweep-enabled", True, False, False, False),
        ("full-sweep-enabled", False, True, False, True),
        ("non-canary-full-sweep-enabled", False, False, False, True),
        ("full-sweep-fail-fast", False, True, True, True),
        ("full-sweep-fail-fast-no-canary", False, False, True, True),
    ],
)
def test_a_primary_label_chooses_the_mode(
    label: str, *, trim: bool, canary: bool, fail_fast: bool, reusable: bool
) -> None:
    made = decide([label], sync())
    assert made.runs
    assert (made.trim, made.canary, made.fail_fast, made.reusable) == (trim, canary, fail_fast, reusable)
    assert made.reuse_first == reusable


@pytest.mark.parametrize("first", [label.name for label in PRIMARY])
@pytest.mark.parametrize("second", [label.name for label in PRIMARY])
def test_two_primary_labels_exclude_each_other(first: str, second: str) -> None:
    if first == second:
        assert decide([first, second], sync()).runs
        return
    with pytest.raises(ConfigError) as caught:
        decide([first, second, "all-evals"], sync())
    assert first in caught.value.message and second in caught.value.message
    assert "--remove-label" in caught.value.fix


def test_without_a_primary_label_nothing_runs_whatever_the_modifiers() -> None:
    for labels in ([], ["all-evals"], ["evals-only"], ["agentx-fast"], ["documentation"]):
        made = decide(labels, sync())
        assert not made.runs and made.reason == "no primary sweep label"


def test_modifiers_reach_the_decision_and_two_of_them_forbid_reuse() -> None:
    both = decide([FULL, "all-evals"], sync())
    assert both.all_evals and both.reusable and both.reuse_first
    only = decide([FULL, "evals-only", "all-evals"], sync())
    assert only.evals_only and only.all_evals and not only.reusable and not only.reuse_first and not only.canary
    fast = decide([FULL, "agentx-fast"], sync())
    assert fast.agentic_fast and not fast.reusable and fast.canary


def test_an_earlier_sweep_is_looked_for_only_when_commits_arrive() -> None:
    for trigger in TRIGGERS:
        if trigger != "push":
            made = decide([FULL], Event(trigger=trigger, changed_label=FULL))
            assert made.runs and made.reuse_first == (trigger == "synchronize")


def test_a_label_that_is_not_ours_starts_nothing() -> None:
    for trigger in ("labeled", "unlabeled"):
        assert not decide([FULL], Event(trigger=trigger, changed_label="documentation")).runs
        assert all(decide([FULL], Event(trigger=trigger, changed_label=label)).runs for label in KNOWN)


def test_drafts_never_run_not_even_to_tell_of_a_conflict() -> None:
    assert decide([FULL, "sweep-enabled"], sync(draft=True)).reason == "a draft"


def test_a_fork_waits_for_a_trusted_dispatch_and_keeps_its_mode() -> None:
    made = decide(["full-sweep-fail-fast"], sync(fork=True))
    assert not made.runs and made.needs_dispatch and made.fail_fast and made.canary


def test_the_skip_word_counts_on_a_pull_request_and_not_on_main() -> None:
    assert not decide([FULL], sync(message="fix: docs [skip-sweep]")).runs
    made = decide(["sweep-enabled", FULL], Event(trigger="push", message="merge [skip-sweep]"))
    assert made.runs and not made.trim
