"""`prony lint`: every fault of master configs, before a device is booked."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.console import say
from prony.cli.findings import plain, print_findings, print_json, print_rule_counts, summary

if TYPE_CHECKING:
    from prony.gate.document import Config


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony lint`."""
    parser = nouns.add_parser(
        "lint",
        help="find faults in master configs",
        description="Find every fault of master configs: schema, runners, concurrencies, speculative decoding, "
        "deprecations, sizes, duplicates. Findings that the base has too do not fail the head.",
        epilog="Exit codes: 0 no new error (warnings may be there), 2 new errors or unreadable files. "
        "example: prony lint configs/*-master.yaml --base-ref origin/main",
    )
    parser.add_argument("config", nargs="*", type=Path, metavar="CONFIG", help="master config (YAML)")
    parser.add_argument("--runner-config", type=Path, metavar="FILE", help="default: runners.yaml beside CONFIG")
    base = parser.add_mutually_exclusive_group()
    base.add_argument("--base", nargs="+", type=Path, metavar="FILE", help="the same configs before the change")
    base.add_argument("--base-ref", metavar="REF", help="the git commit that holds the configs before the change")
    parser.add_argument("--base-runner-config", type=Path, metavar="FILE", help="default: that of the head")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="deprecations; default: those that come with prony")
    parser.add_argument("--all", action="store_true", help="show findings that the base has too")
    parser.add_argument("--json", action="store_true", help="one JSON object for programs")
    parser.add_argument("--rules", action="store_true", help="list the rules and do nothing else")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Lint and print. Raises ConfigError for files that cannot be read."""
    from prony.base.errors import ConfigError
    from prony.gate.document import file_source, read_config
    from prony.gate.lint import lint
    from prony.gate.policy import load_policy

    if arguments.rules:
        return _print_rules(arguments.json)
    if not arguments.config:
        raise ConfigError("lint: no CONFIG was named", fix="prony lint configs/nvidia-master.yaml")
    runners = arguments.runner_config or arguments.config[0].parent / "runners.yaml"
    if not runners.exists():
        raise ConfigError(
            f"{runners}: no such file",
            allowed="a runners file: labels: and hardware:",
            fix="name it with --runner-config",
        )
    head = read_config([file_source(path) for path in arguments.config], file_source(runners))
    report = lint(head, load_policy(arguments.policy), _base(arguments, runners))
    shown = (*report.new, *report.known) if arguments.all else report.new
    if arguments.json:
        found = [plain(item, new=True) for item in report.new] + [plain(item, new=False) for item in report.known]
        print_json({"findings": found[: len(shown)], "known": len(report.known), "exit_code": report.exit_code})
        return report.exit_code
    print_findings(shown)
    print_rule_counts(shown)
    known = f"; {len(report.known)} at the base too{'' if arguments.all else ' (--all shows them)'}"
    say(f"{len(head.names)} keys: {summary(report.new)}{known if report.known else ''}", sys.stderr)
    return report.exit_code


def _base(arguments: argparse.Namespace, runners: Path) -> "Config | None":
    """Read the configs before the change; None where there is nothing to compare with."""
    from prony.gate.document import file_source, read_config

    if arguments.base:
        named = arguments.base_runner_config or runners
        return read_config([file_source(path) for path in arguments.base], file_source(named))
    if arguments.base_ref is not None:
        from prony.gate.atref import config_at

        return config_at(arguments.base_ref, arguments.config, arguments.base_runner_config or runners)
    return None


def _print_rules(as_json: bool) -> int:
    from prony.gate.catalogue import RULES

    if as_json:
        names = ("id", "severity", "what", "fix", "source")
        print_json([{name: getattr(rule, name) for name in names} for rule in RULES])
        return 0
    for rule in RULES:
        say(f"{rule.id} ({rule.severity}): {rule.what}\n  what to do: {rule.fix}\n  source: {rule.source}")
    return 0
