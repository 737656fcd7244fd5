"""`prony acceptance`: committed curves, the value that applies, a check of configs, and curves of one's own."""

import argparse
import sys
from pathlib import Path

from prony.cli.arguments import whole
from prony.cli.console import say

_FAULTS = 2


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony acceptance`."""
    parser = nouns.add_parser(
        "acceptance",
        help="golden acceptance lengths of drafters",
        description="Golden acceptance: how many tokens a verification step yields for a model and its drafter.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    _add_list(verbs)
    _add_resolve(verbs)
    _add_check(verbs)
    _add_collect(verbs)


def _add_list(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "list",
        help="list the curves",
        description="List the committed curves, and what looks odd about them.",
        epilog="example: prony acceptance list",
    )
    _add_recipes(parser)
    parser.set_defaults(run=list_curves)


def _add_resolve(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "resolve",
        help="the length that applies, and what each engine is told",
        description="Show the acceptance length of a model and draft length, and how each engine is told.",
        epilog="example: prony acceptance resolve amd/GLM-5.2-MXFP4 --steps 3",
    )
    parser.add_argument("model", metavar="MODEL", help="checkpoint id")
    parser.add_argument("--steps", type=whole(1), required=True, metavar="K", help="tokens drafted in a row")
    parser.add_argument("--method", default="mtp", metavar="NAME", help="how is drafted; default: mtp")
    parser.add_argument("--drafter", default="self", metavar="MODEL", help="what drafts; default: the model's own head")
    parser.add_argument("--draft-sample", metavar="NAME", help="how drafts are drawn; default: as the engine does")
    parser.add_argument("--rejection", metavar="NAME", help="how drafts are judged; default: as the engine does")
    parser.add_argument("--thinking", choices=("on", "off"), default="on", help="default: on")
    _add_recipes(parser)
    parser.set_defaults(run=resolve)


def _add_check(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "check",
        help="hold acceptance lengths that were typed by hand against the curves",
        description="Compare every acceptance length that a master config or a launch file states with the committed "
        "curve at the draft length that is served.",
        epilog="Exit codes: 0 all agree, 2 some do not. "
        "example: prony acceptance check configs/nvidia-master.yaml --recipes-root srt-slurm-recipes",
    )
    parser.add_argument("config", nargs="+", type=Path, metavar="CONFIG", help="master config (YAML)")
    parser.add_argument(
        "--recipes-root", type=Path, metavar="DIR", help="where the launch files of CONFIG_FILE settings lie"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for programs")
    parser.set_defaults(run=check)


def _add_collect(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "collect",
        help="measure a cell of a curve on a running engine",
        description="Ask a running engine, one request at a time, and read from its counters how its drafts fare: the "
        "acceptance length with a bootstrap interval over the prompts, and the rate at each position. Add cells until "
        "the curve is whole; it must not fall as more tokens are drafted.",
        epilog="example: prony acceptance collect --url http://127.0.0.1:8000 --model m --steps 3 --prompts p.jsonl "
        "--method mtp --curve acceptance/m.yaml",
    )
    parser.add_argument("--url", required=True, metavar="URL", help="the engine, with metrics on")
    parser.add_argument("--model", required=True, metavar="NAME", help="name under which it serves")
    parser.add_argument("--checkpoint", metavar="ID", help="checkpoint of the curve; default: --model")
    parser.add_argument("--steps", type=whole(1), required=True, metavar="K", help="tokens that it drafts in a row")
    parser.add_argument("--method", default="mtp", metavar="NAME", help="how it drafts; default: mtp")
    parser.add_argument("--drafter", default="self", metavar="MODEL", help="what drafts; default: the model's own head")
    parser.add_argument("--thinking", choices=("on", "off"), default="on", help="which half of the curve; default: on")
    parser.add_argument("--prompts", type=Path, required=True, metavar="FILE", help='JSON lines: {"prompt": …} or body')
    parser.add_argument("--output-tokens", type=whole(1), default=4096, metavar="N", help="of a prompt; default: 4096")
    parser.add_argument("--curve", type=Path, required=True, metavar="FILE", help="the curve to begin or to extend")
    parser.add_argument("--seed", type=whole(0), default=0, metavar="S", help="of the bootstrap; default: 0")
    parser.set_defaults(run=collect)


def _add_recipes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--recipes", type=Path, metavar="DIR", help="curves of one's own are in its acceptance/")


def list_curves(arguments: argparse.Namespace) -> int:
    """Print one line per curve, and below it where it falls."""
    from prony.cli.columns import Column, print_table
    from prony.facts.curves import falls
    from prony.recipe.catalogue import load_catalogue

    curves = load_catalogue((arguments.recipes,) if arguments.recipes else ()).curves
    rows = [
        (curve.name, curve.method, curve.drafter, thinking, " ".join(f"{value:.2f}" for value in lengths.values()))
        for curve in curves
        for thinking, lengths in (("on", curve.thinking_on), ("off", curve.thinking_off or {}))
        if lengths
    ]
    columns = (
        Column("curve", least=20),
        Column("method"),
        Column("drafter", least=12, drop=1),
        Column("thinking"),
        Column("length at 1, 2, … drafted tokens", wraps=True),
    )
    print_table(columns, rows)
    for curve in curves:
        for line in falls(curve):
            say(f"note: {curve.name}: {line}", sys.stderr)
    return 0


def resolve(arguments: argparse.Namespace) -> int:
    """Print the length and each engine's switch. Raises ConfigError."""
    from prony.recipe.acceptance import Drafting, golden
    from prony.recipe.catalogue import load_catalogue
    from prony.recipe.deployment import SpecDecode
    from prony.recipe.engines.switches import switches

    curves = load_catalogue((arguments.recipes,) if arguments.recipes else ()).curves
    spec = SpecDecode(
        method=_method(arguments.method),
        steps=arguments.steps,
        draft_tokens=arguments.steps + 1,
        draft_sample=arguments.draft_sample,
        rejection=arguments.rejection,
    )
    found = golden(curves, arguments.model, Drafting(spec, arguments.drafter, arguments.thinking, "--steps"))
    say(f"{found.length} tokens a step ({found.curve.name}, {found.curve.digest[:12]}; {found.curve.source})")
    for engine, words in switches(found.length, arguments.steps):
        say(f"  {engine:8} {words}")
    return 0


def _method(name: str) -> str:
    from typing import get_args

    from prony.base.errors import ConfigError
    from prony.recipe.deployment import SpecMethod

    if name not in get_args(SpecMethod):
        raise ConfigError(f"--method {name}: unknown", allowed=", ".join(get_args(SpecMethod)))
    return name


def check(arguments: argparse.Namespace) -> int:
    """Print findings about acceptance lengths that are typed by hand."""
    from prony.cli.findings import plain, print_findings, print_json, summary
    from prony.facts.curves import shipped_curves
    from prony.gate.acceptance import check_acceptance

    findings = check_acceptance(arguments.config, arguments.recipes_root, shipped_curves())
    if arguments.json:
        print_json({"findings": [plain(finding) for finding in findings]})
    else:
        print_findings(findings)
        say(summary(findings))
    return _FAULTS if any(finding.severity == "error" for finding in findings) else 0


def collect(arguments: argparse.Namespace) -> int:
    """Measure one cell and write it into the curve. Raises ConfigError, LaunchError, MeasurementError."""
    from prony.load.acceptance import Collection, collect_cell
    from prony.load.curvefile import add_cell

    asked = Collection(
        url=arguments.url,
        model=arguments.model,
        steps=arguments.steps,
        thinking=arguments.thinking,
        output_tokens=arguments.output_tokens,
        seed=arguments.seed,
    )
    cell = collect_cell(asked, arguments.prompts, _tell)
    notes = add_cell(
        arguments.curve, cell, arguments.checkpoint or arguments.model, arguments.method, arguments.drafter
    )
    low, high = cell.ci95 or (float("nan"), float("nan"))
    say(
        f"{cell.length:.3f} tokens a step, 95 % [{low:.3f}, {high:.3f}], {cell.drafts} drafts of {cell.prompts} prompts"
    )
    say("accepted at each position: " + " ".join(f"{count / cell.drafts:.3f}" for count in cell.accepted_at))
    say(f"written to {arguments.curve}")
    for note in notes:
        say(f"note: {note}", sys.stderr)
    return 0


def _tell(done: int, total: int) -> None:
    """Say how far it has come, about ten times in all."""
    if done == total or done % max(1, total // 10) == 0:
        say(f"{done} of {total} prompts", sys.stderr)
