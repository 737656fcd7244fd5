"""The class of a change by its paths, and what to do next."""

import re
from collections.abc import Collection, Sequence

from prony.base.finding import Finding
from prony.base.model import Frozen
from prony.base.units import counted
from prony.gate.sweep import Sweep

# In this order: the first pattern that fits a path names its class.
CLASSES: tuple[tuple[str, str], ...] = (
    ("config", r"configs/.*|(.*/)?runners\.ya?ml|perf-changelog\.yaml"),
    ("recipe", r"(benchmarks|recipes|scripts)/.*|(.*/)?recipes/.*|golden_al_distribution/.*"),
    ("docs", r"docs/.*|.*\.md|LICENSE|CODEOWNERS|\.github/CODEOWNERS"),
)


LINK_UNJUDGED = "changelog-link-unjudged"
GUIDE = "docs/how-to/changelog.md"


class Step(Frozen):
    """What to do next, in words; empty command where no command does it."""

    text: str
    command: str = ""


def class_of(path: str) -> str:
    """Return config, recipe, docs, or harness for everything else."""
    return next((name for name, pattern in CLASSES if re.fullmatch(pattern, path)), "harness")


def classes_of(paths: Sequence[str], configs: Collection[str], runners: str, changelog: str) -> tuple[str, ...]:
    """Return the classes of changed paths, each once, in a steady order."""
    ours = {*configs, runners, changelog}
    found = {"config" if path in ours else class_of(path) for path in paths}
    return tuple(name for name in ("config", "recipe", "harness", "docs") if name in found)


def next_step(
    findings: Sequence[Finding], asked: Sweep | None, changed: Sequence[str], base: str, uncommitted: int = 0
) -> Step:
    """Return the one thing to do next; base: the branch that the change goes to; uncommitted: files of the change."""
    rules = {finding.rule for finding in findings}
    if "merge-unfinished" in rules:
        return Step(
            text="finish the merge: mend the files, 'git add' them, 'git commit', then check again",
            command="git status",
        )
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        repairable = any(finding.rule.startswith("changelog-") and "--fix" in finding.fix for finding in errors)
        first = f", first {errors[0].where}" if errors[0].where else ""
        return Step(
            text=f"mend {counted(len(errors), 'error')}{first}, then check again",
            command="prony check --fix" if repairable else "prony check",
        )
    if not changed:
        return Step(text="nothing differs from the base: change something first")
    if rules & {"base-moved", "base-changelog"}:
        driver = f" with the merge driver of {GUIDE}" if "base-changelog" in rules else ""
        by_hand = ", look at the keys that both changed" if "base-moved" in rules else ""
        return Step(
            text=f"merge {base} into your branch{driver}{by_hand}, then check again", command=f"git merge {base}"
        )
    left = sum(finding.rule == "name-dangling" for finding in findings)
    if left:
        return Step(text=f"mend {counted(left, 'name')} left dangling, then check again", command="prony check")
    unasked = next((finding for finding in findings if finding.rule == "changelog-unasked"), None)
    if unasked is not None:
        return Step(
            text="ask for the new points in the change log, or push as it is and run nothing", command=unasked.fix
        )
    if LINK_UNJUDGED in rules:
        return Step(text="check the links, with the number of your pull request", command="prony check --pr N")
    first = f"commit {counted(uncommitted, 'file')}, then push" if uncommitted else "push"
    command = "git add --all && git commit && git push" if uncommitted else "git push"
    if asked is not None and asked.booking.jobs:
        jobs, hours = counted(asked.booking.jobs, "job"), asked.booking.gpu_hours
        text = f"{first}, then ask for a sweep: {jobs}, at most {hours:,.0f} GPU-hours"
        return Step(text=text, command=command)
    return Step(text=first, command=command)
