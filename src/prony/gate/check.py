"""The one check before a push: lint, changelog, matrix diff, feasibility, dangling names, what main changed, and the
next step."""

from dataclasses import dataclass, replace

from prony.base.errors import ConfigError
from prony.base.files import write_atomic
from prony.base.finding import Finding
from prony.gate.diff import MatrixDiff, diff
from prony.gate.document import Config, Source, file_source, read_config
from prony.gate.feasible import feasibility_findings
from prony.gate.git import Checkout
from prony.gate.lint import lint
from prony.gate.logcheck import LogChange, changelog_findings, masters_of, read_log_change
from prony.gate.names import dangling, moved_under, unasked, unfinished
from prony.gate.policy import Policy
from prony.gate.steps import Step, classes_of, next_step
from prony.gate.sweep import Sweep, sweep
from prony.spec.changelog.mended import mended_lines

CONFIGS = ("configs/nvidia-master.yaml", "configs/amd-master.yaml")
RUNNERS = "configs/runners.yaml"
CHANGELOG = "perf-changelog.yaml"
# Errors that leave open which points a config has, or what they would book.
UNSETTLING = ("yaml-duplicate-key", "key-two-files", "runner-unknown", "topology-size", "dram-budget")


@dataclass(frozen=True)
class Layout:
    """Where a checkout keeps its files, from its root."""

    configs: tuple[str, ...] = CONFIGS
    runners: str = RUNNERS
    changelog: str = CHANGELOG


@dataclass(frozen=True)
class Commits:
    """The branch that the change goes to, its tip, and the last commit that both have."""

    base: str
    tip: str
    fork: str


@dataclass(frozen=True)
class CheckReport:
    """What was found. known: how many lint findings the base has too. diff: None where a master is no YAML,
    or where new errors leave open what the points are, where they run or how large their nodes are.

    sweep: what the new entries of the change log make run; None where there are none, or none that can be selected.
    """

    commits: Commits
    changed: tuple[str, ...]
    classes: tuple[str, ...]
    uncommitted: int
    findings: tuple[Finding, ...]
    known: int
    diff: MatrixDiff | None
    sweep: Sweep | None
    step: Step
    log_changed: bool

    @property
    def exit_code(self) -> int:
        """2 where a finding is an error, else 0."""
        return 2 if any(finding.severity == "error" for finding in self.findings) else 0


def check(checkout: Checkout, layout: Layout, base: str | None, policy: Policy, pr: int | None = None) -> CheckReport:
    """Check the work tree against the last commit it shares with a base branch. Raises ConfigError."""
    commits = find_commits(checkout, base)
    before = read_at(checkout, layout, commits.fork)
    head = read_work_tree(checkout, layout)
    report = lint(head, policy, before)
    difference = None if head.unreadable or before.unreadable else diff(before, head)
    unsettled = tuple(finding for finding in report.new if finding.rule in UNSETTLING)
    log = read_log_change(checkout, layout.changelog, commits.fork)
    findings = [
        *unfinished(checkout),
        *report.new,
        *changelog_findings(log, before, head, None if unsettled else difference, pr or "any"),
    ]
    if difference is not None:
        findings += unasked(log, difference)
        if not unsettled:
            findings += feasibility_findings(checkout, layout.configs, head, difference.to_run)
        findings += dangling(checkout, before, head, layout.changelog)
    if commits.tip != commits.fork:
        now = read_at(checkout, layout, commits.tip)
        findings += moved_under(checkout, commits.fork, commits.tip, before, now, head, log)
    changed = checkout.changed(commits.fork)
    classes = classes_of(changed, layout.configs, layout.runners, layout.changelog)
    asked = None if unsettled else _sweep(log, before, head)
    difference = None if unsettled else difference
    uncommitted = checkout.uncommitted()
    step = next_step(findings, asked, changed, commits.base, uncommitted)
    return CheckReport(
        commits, changed, classes, uncommitted, tuple(findings), len(report.known), difference, asked, step,
        log.changed,
    )  # fmt: skip


def _sweep(log: LogChange, before: Config, head: Config) -> Sweep | None:
    """Return what new entries make run; None where findings have said already why that cannot be known."""
    masters = masters_of(before, head)
    if masters is None or not log.added:
        return None
    try:
        return sweep([entry.asked for entry in log.added], masters, head)
    except ConfigError:
        return None


def find_commits(checkout: Checkout, base: str | None) -> Commits:
    """Return the commits of a check. Raises ConfigError for a ref that names none."""
    name = checkout.default_base() if base is None else base
    tip = checkout.commit(name)
    return Commits(name, tip, checkout.merge_base(tip, checkout.commit("HEAD")))


def read_at(checkout: Checkout, layout: Layout, commit: str) -> Config:
    """Read the configs of a commit; files that it does not have are empty. Raises ConfigError for its runners."""
    found = [(path, checkout.text(commit, path)) for path in layout.configs]
    runners = checkout.text(commit, layout.runners)
    if runners is None:
        runners = file_source(checkout.folder / layout.runners).text
    return read_config([Source(path, text) for path, text in found if text], Source(layout.runners, runners))


def read_work_tree(checkout: Checkout, layout: Layout) -> Config:
    """Read the configs as they stand. Raises ConfigError where one that was named, or the runners file, is missing."""
    found = [path for path in layout.configs if _exists(checkout, path)]
    if not found:
        raise ConfigError(
            f"{checkout.folder}: no master config: {', '.join(layout.configs)}",
            allowed="a checkout with these files, or other names",
            fix="name the configs with --config-files, or the checkout with --repo",
        )
    return read_config([_here(checkout, path) for path in found], _here(checkout, layout.runners))


def _exists(checkout: Checkout, path: str) -> bool:
    if (checkout.folder / path).exists():
        return True
    if path in CONFIGS:
        return False
    raise ConfigError(f"{path}: no such file in {checkout.folder}", fix="name the configs with --config-files")


def _here(checkout: Checkout, path: str) -> Source:
    try:
        return replace(file_source(checkout.folder / path), name=path)
    except ConfigError as error:
        fix = f"{error.fix}; --config-files and --runner-config name other files"
        raise ConfigError(error.message, allowed=error.allowed, fix=fix) from None


def mend(checkout: Checkout, layout: Layout, base: str | None, pr: int | None = None) -> tuple[str, ...]:
    """Repair what can be repaired mechanically; return what was done, in words. Raises ConfigError, LaunchError."""
    log = read_log_change(checkout, layout.changelog, find_commits(checkout, base).fork)
    mended = log.repaired(pr or "any")
    if mended is None or log.head is None:
        return ()
    write_atomic(checkout.folder / layout.changelog, mended)
    return tuple(f"{layout.changelog}:{line}" for line in mended_lines(log.before.raw, log.head.raw, mended))
