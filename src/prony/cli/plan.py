"""`prony plan`: what a config asks for, judged before anything is queued."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.console import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prony.base.finding import Finding
    from prony.plan.judged import Judged

_IMPOSSIBLE = 2
_SOME = 5


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony plan`."""
    parser = nouns.add_parser(
        "plan",
        help="what can run, and as asked, before anything is queued",
        description="Plan what a config asks for.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    check = verbs.add_parser(
        "check",
        help="judge every point: OK, TIGHT or IMPOSSIBLE, with the rule and its evidence",
        description="Judge every point by the feasibility rules: kernel shapes, what divides among devices, memory, "
        "concurrency that is not realised, draft layers, variables that nothing reads, images, recipes. Works without "
        "recipes too: what a launch says is not checked then.",
        epilog="Exit codes: 0 nothing is impossible, 2 something is, or the config is wrong. "
        "example: prony plan check examples/seeds/master.yaml --all",
    )
    check.add_argument("config", nargs="*", type=Path, metavar="CONFIG", help="master config (YAML)")
    check.add_argument("--keys", nargs="+", metavar="KEY", help="config keys to judge; globs; default: all")
    check.add_argument("--runner-config", type=Path, metavar="FILE", help="default: runners.yaml beside CONFIG")
    check.add_argument(
        "--recipes", type=Path, metavar="DIR", help="default: recipes/ beside CONFIG, then those that come with prony"
    )
    check.add_argument("--all", action="store_true", help="list the points that are OK too")
    check.add_argument("--rules", action="store_true", help="list the rules and do nothing else")
    check.add_argument("--json", action="store_true", help="one JSON object for programs: every point, every finding")
    check.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge and print. Raises ConfigError and PlanError."""
    from prony.base.errors import ConfigError
    from prony.cli.inputs import find_inputs, read_matrix
    from prony.plan.judged import judge
    from prony.recipe.catalogue import load_catalogue
    from prony.spec.master import load_master

    if arguments.rules:
        return _print_rules(arguments.json)
    if not arguments.config:
        raise ConfigError("plan check: no CONFIG was named", fix="prony plan check configs/amd-master.yaml")
    inputs = find_inputs(arguments)
    matrix = read_matrix(inputs, unlisted="note")
    places = {key.key: key.where for key in load_master(inputs.configs).keys}
    judged = judge(matrix.points, load_catalogue(inputs.recipes), places)
    code = _IMPOSSIBLE if any(one.status == "IMPOSSIBLE" for one in judged) else 0
    if arguments.json:
        _print_json(judged, code)
    else:
        _print_table(judged if arguments.all else [one for one in judged if one.status != "OK"])
        _print_findings(judged)
    for line in (*matrix.left_out, *matrix.notes):
        say(f"note: {line}", sys.stderr)
    if not arguments.json:
        say(_summary(judged))
    return code


def _print_table(judged: "Sequence[Judged]") -> None:
    """Print one line per group of points that differ in their concurrency only."""
    from prony.cli.columns import Column, print_table

    groups: dict[tuple[str, ...], list[str]] = {}
    for one in judged:
        groups.setdefault(_cells(one), []).append(str(one.point.concurrency))
    if not groups:
        return
    columns = (
        Column("status"),
        Column("key", least=24),
        Column("runner", drop=3),
        Column("isl/osl", drop=2),
        Column("topology", least=12),
        Column("spec", drop=1),
        Column("conc", least=8, wraps=True),
        Column("rules", least=16, wraps=True),
    )
    print_table(columns, [(*cells[:-1], " ".join(found), cells[-1]) for cells, found in groups.items()])


def _cells(one: "Judged") -> tuple[str, ...]:
    point = one.point
    lengths = f"{point.workload.isl}/{point.workload.osl}" if point.workload.kind == "fixed-seq-len" else "agentic"
    rules = dict.fromkeys(finding.rule for finding in one.findings if finding.severity != "info")
    return (
        one.status, point.config_key, point.runner, lengths, point.topology.label, point.spec_decoding,
        " ".join(rules),
    )  # fmt: skip


def _print_findings(judged: "Sequence[Judged]") -> None:
    """Print what stands against points, once for those of one key and spread; then what is worth knowing."""
    from prony.base.units import counted
    from prony.cli.findings import print_findings
    from prony.plan.judged import gathered

    print_findings(gathered(judged))
    notes: dict[str, list[tuple[str, Finding]]] = {}
    for one in judged:
        for finding in one.findings:
            if finding.severity == "info":
                notes.setdefault(finding.rule, []).append((one.point.config_key, finding))
    for rule, found in notes.items():
        keys = list(dict.fromkeys(key for key, _ in found))
        more = f" and {len(keys) - _SOME} more" if len(keys) > _SOME else ""
        told = found[0][1]
        say(f"note [{rule}] {counted(len(found), 'point')} of {', '.join(keys[:_SOME])}{more}: {told.message}")
        say(f"  what to do: {told.fix}")


def _summary(judged: "Sequence[Judged]") -> str:
    from collections import Counter

    from prony.base.units import counted

    counts = Counter(one.status for one in judged)
    told = [f"{counts[name]} {name}" for name in ("OK", "TIGHT", "IMPOSSIBLE") if counts[name]]
    return f"{counted(len(judged), 'point')}: {', '.join(told)}"


def _print_json(judged: "Sequence[Judged]", code: int) -> None:
    from prony.cli.findings import plain, print_json

    def told(one: "Judged") -> dict[str, Any]:
        point = one.point
        return {
            "key": point.config_key, "topology": point.topology.label, "concurrency": point.concurrency,
            "workload": point.workload.model_dump(mode="json"), "spec_decoding": point.spec_decoding,
            "status": one.status, "findings": [plain(finding) for finding in one.findings],
        }  # fmt: skip

    print_json({"points": [told(one) for one in judged], "exit_code": code})


def _print_rules(as_json: bool) -> int:
    from prony.cli.findings import print_json
    from prony.facts.feasibility import shipped_rules

    if as_json:
        print_json([rule.model_dump(mode="json") for rule in shipped_rules()])
        return 0
    for rule in shipped_rules():
        say(f"{rule.id} ({rule.severity}): {rule.message}\n  what to do: {rule.fix}\n  evidence: {rule.evidence}")
    return 0
