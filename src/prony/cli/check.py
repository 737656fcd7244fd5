"""`prony check`: the one command before a push."""

import argparse
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import whole
from prony.cli.console import say
from prony.cli.findings import plain, print_findings, print_json, summary

if TYPE_CHECKING:
    from prony.gate.check import CheckReport, Layout
    from prony.gate.steps import Step

_SAME = ("base", "repo", "pr", "config_files", "runner_config", "changelog", "policy")


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony check`."""
    parser = nouns.add_parser(
        "check",
        help="the one command before a push",
        description="Check the work tree against the base branch: new lint findings, the change log, points and "
        "GPU-hours, new points that cannot run, names left dangling, keys that the base changed too; then say what to "
        "do next. Works offline.",
        epilog="Exit codes: 0 nothing stands in the way, 2 errors. example: prony check --base origin/main --pr 1234",
    )
    parser.add_argument("--base", metavar="REF", help="where the change goes; default: origin/main, else main")
    parser.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="default: the folder you are in")
    parser.add_argument("--pr", type=whole(1), metavar="N", help="number of the pull request, which links must name")
    parser.add_argument("--config-files", nargs="+", metavar="PATH", help="default: configs/{nvidia,amd}-master.yaml")
    parser.add_argument("--runner-config", metavar="PATH", help="default: configs/runners.yaml")
    parser.add_argument("--changelog", metavar="PATH", help="default: perf-changelog.yaml")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="deprecations; default: those that come with prony")
    parser.add_argument("--fix", action="store_true", help="first mend the change log where that is mechanical")
    parser.add_argument("--json", action="store_true", help="one JSON object for programs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Mend when asked, check and print. Raises ConfigError."""
    from prony.gate.check import CHANGELOG, CONFIGS, RUNNERS, Layout, check, mend
    from prony.gate.git import find_checkout
    from prony.gate.policy import load_policy

    layout = Layout(
        configs=tuple(arguments.config_files or CONFIGS),
        runners=arguments.runner_config or RUNNERS,
        changelog=arguments.changelog or CHANGELOG,
    )
    checkout = find_checkout(arguments.repo)
    mended = mend(checkout, layout, arguments.base, arguments.pr) if arguments.fix else ()
    report = check(checkout, layout, arguments.base, load_policy(arguments.policy), arguments.pr)
    report = replace(report, step=_with_options(report.step, arguments))
    if arguments.json:
        print_json(_plain(report, mended))
    else:
        _print(report, mended, _lint_command(checkout.folder, layout))
    return report.exit_code


def _with_options(step: "Step", arguments: argparse.Namespace) -> "Step":
    """Return a step whose command, typed as it stands, checks the same files against the same base."""
    start = "prony check"
    if step.command.startswith("prony changelog add") and arguments.pr:
        return step.model_copy(update={"command": f"{step.command} --pr {arguments.pr}"})
    if not step.command.startswith(start):
        return step
    given = [word for name in _SAME for word in _words(name, getattr(arguments, name))]
    return step.model_copy(update={"command": " ".join((start, *given)) + step.command.removeprefix(start)})


def _words(name: str, value: object) -> list[str]:
    """Return an option as it is typed; nothing for one at its default."""
    if value is None or (name == "repo" and value == Path()):
        return []
    values = value if isinstance(value, list) else [value]
    return [f"--{name.replace('_', '-')}", *(shlex.quote(str(item)) for item in values)]


def _lint_command(folder: Path, layout: "Layout") -> str:
    """Return the command that lists the findings which the base has too."""
    here = Path.cwd()
    paths = [folder / name for name in layout.configs if (folder / name).exists()]
    runners = folder / layout.runners
    odd = [] if runners.parent == paths[0].parent and runners.name == "runners.yaml" else ["--runner-config", runners]
    words = [path.relative_to(here) if path.is_relative_to(here) else path for path in paths]
    return shlex.join(["prony", "lint", *map(str, words), *map(str, odd)])


def _print(report: "CheckReport", mended: tuple[str, ...], lint_command: str) -> None:
    from prony.base.units import counted
    from prony.cli.matrixdiff import cost, counts

    for line in mended:
        say(line)
    print_findings(report.findings)
    kind = " and ".join(report.classes) or "none"
    loose = f", {counted(report.uncommitted, 'file')} not committed" if report.uncommitted else ""
    say(f"change: {kind} ({counted(len(report.changed), 'file')} since {report.commits.base}{loose})")
    if report.diff is None:
        say("points and GPU-hours: not compared, not computed until the errors above are mended")
    else:
        say(counts(report.diff))
        if report.diff.to_run:
            say(f"new and altered points: {cost(report.diff.booking)}")
    if report.sweep is not None:
        rows = f"{counted(report.sweep.benchmarks, 'benchmark row')}, {counted(report.sweep.evals, 'eval')}"
        say(f"new change log entries run: {rows}: {cost(report.sweep.booking)}")
    elif report.exit_code and report.log_changed:
        say("new change log entries: what they run is not computed until the errors are mended")
    known = f"; {report.known} old ones in lint ({lint_command} shows them)" if report.known else ""
    say(f"findings: {summary(report.findings)}{known}")
    say(f"next: {report.step.text}" + (f"\n  {report.step.command}" if report.step.command else ""))


def _plain(report: "CheckReport", mended: tuple[str, ...]) -> dict[str, object]:
    commits = report.commits
    return {
        "base": commits.base, "base_commit": commits.tip, "merge_base": commits.fork, "mended": list(mended),
        "classes": list(report.classes), "changed": list(report.changed), "uncommitted": report.uncommitted,
        "findings": [plain(finding) for finding in report.findings], "known": report.known,
        "diff": None if report.diff is None else report.diff.model_dump(mode="json"),
        "sweep": None if report.sweep is None else report.sweep.model_dump(mode="json"),
        "next": report.step.model_dump(mode="json"), "exit_code": report.exit_code,
    }  # fmt: skip
