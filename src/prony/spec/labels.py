"""What the labels of a pull request make of a sweep."""

from collections.abc import Iterable
from typing import Literal

from prony.base.errors import ConfigError
from prony.base.model import Frozen

Trigger = Literal["push", "ready_for_review", "synchronize", "labeled", "unlabeled"]
TRIGGERS: tuple[Trigger, ...] = ("push", "ready_for_review", "synchronize", "labeled", "unlabeled")


class Primary(Frozen):
    """What one primary label asks for. trim: only the lowest concurrency of each deployment."""

    name: str
    trim: bool = False
    canary: bool = True
    fail_fast: bool = False


PRIMARY = (
    Primary(name="sweep-enabled", trim=True, canary=False),
    Primary(name="full-sweep-enabled"),
    Primary(name="non-canary-full-sweep-enabled", canary=False),
    Primary(name="full-sweep-fail-fast", fail_fast=True),
    Primary(name="full-sweep-fail-fast-no-canary", canary=False, fail_fast=True),
)
ALL_EVALS, EVALS_ONLY, AGENTIC_FAST = "all-evals", "evals-only", "agentx-fast"
PRIORITY = ("skip_queue", "ci-patchwork", "engine-patch", "ci-patchwork-waived", "ci-checklist-complete")
KNOWN = frozenset({*(label.name for label in PRIMARY), ALL_EVALS, EVALS_ONLY, AGENTIC_FAST, *PRIORITY})
SKIP_WORD = "[skip-sweep]"


class Event(Frozen):
    """What happened. changed_label: of a labeled or unlabeled event. message: of the head commit."""

    trigger: Trigger
    changed_label: str = ""
    draft: bool = False
    fork: bool = False
    message: str = ""


class Decision(Frozen):
    """Whether a sweep runs, why, and how.

    reusable: its results may serve the merge. reuse_first: ask whether an earlier sweep is authorised to be used
    instead. needs_dispatch: a maintainer's trusted dispatch runs it, since a fork's code must not see secrets.
    """

    runs: bool
    reason: str
    trim: bool = False
    canary: bool = False
    fail_fast: bool = False
    reusable: bool = False
    reuse_first: bool = False
    needs_dispatch: bool = False
    all_evals: bool = False
    evals_only: bool = False
    agentic_fast: bool = False


def decide(labels: Iterable[str], event: Event) -> Decision:
    """Decide from labels and event. Raises ConfigError for more than one primary label.

    A push to main runs everything behind a canary; labels do not count there, nor does the word in the message.
    Labels that are not ours change nothing, and adding or removing one starts nothing.
    """
    if event.trigger == "push":
        return Decision(runs=True, reason="push to main", canary=True)
    if event.draft:
        return Decision(runs=False, reason="a draft")
    if event.trigger in ("labeled", "unlabeled") and event.changed_label not in KNOWN:
        return Decision(runs=False, reason=f"label '{event.changed_label}' is no sweep label")
    present = frozenset(labels)
    primary = primary_label(present)
    if primary is None:
        return Decision(runs=False, reason="no primary sweep label")
    return _of_primary(primary, present, event)


def primary_label(labels: frozenset[str]) -> Primary | None:
    """Return the one primary label, or None. Raises ConfigError when there are several."""
    found = [label for label in PRIMARY if label.name in labels]
    if len(found) > 1:
        raise ConfigError(
            f"labels {' and '.join(label.name for label in found)} exclude each other",
            allowed="one of " + ", ".join(label.name for label in PRIMARY),
            fix=f"remove all but one, as in: gh pr edit --remove-label {found[-1].name}",
        )
    return found[0] if found else None


def _of_primary(primary: Primary, labels: frozenset[str], event: Event) -> Decision:
    incompatible = labels & {EVALS_ONLY, AGENTIC_FAST}
    reusable = not primary.trim and not incompatible
    asked = Decision(
        runs=True,
        reason=f"label {primary.name}",
        trim=primary.trim,
        canary=primary.canary and EVALS_ONLY not in labels,
        fail_fast=primary.fail_fast,
        reusable=reusable,
        reuse_first=reusable and event.trigger == "synchronize",
        all_evals=ALL_EVALS in labels,
        evals_only=EVALS_ONLY in labels,
        agentic_fast=AGENTIC_FAST in labels,
    )
    if SKIP_WORD in event.message:
        return asked.model_copy(update={"runs": False, "reason": f"{SKIP_WORD} in the head commit's message"})
    if event.fork:
        reason = "from a fork: runs when a maintainer dispatches exactly this commit"
        return asked.model_copy(update={"runs": False, "reason": reason, "needs_dispatch": True})
    return asked
