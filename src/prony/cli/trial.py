"""`prony try`: serve one point by hand, load it at several concurrencies, compare a change launch by launch."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import whole
from prony.cli.console import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prony.measure.result import Row
    from prony.plan.job import Job
    from prony.recipe.leaves import Leaf
    from prony.run.trial import Side, Tried
    from prony.spec.point import Point

NAME = "try"
_METRICS = (("tput_per_gpu", "value"), ("interactivity", "p50"), ("ttft", "p50"), ("tpot", "p50"), ("e2el", "p50"))


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony try`."""
    parser = nouns.add_parser(
        NAME,
        help="serve one point by hand and compare changes to it",
        description="Serve one point, keep its server warm over several concurrencies, and compare it with a change "
        "or another key: launches alternate, differences are given per pair with a 95 % interval. Nothing is official "
        "and nothing goes into the store.",
        epilog="examples:\n"
        "  prony try sim-tiny --config examples/sim/master.yaml --at conc=4 --conc 1 2 4\n"
        "  prony try sim-tiny --config examples/sim/master.yaml --at conc=4 --set roles.agg.args.itl-ms=3 \\\n"
        "    --against sim-tiny",
    )
    parser.add_argument("key", metavar="KEY", help="config key")
    parser.add_argument("--config", nargs="+", type=Path, metavar="FILE", help="default: ./master.yaml")
    parser.add_argument("--runner-config", type=Path, metavar="FILE", help="default: runners.yaml beside the config")
    parser.add_argument("--load", type=Path, metavar="FILE", help="load rules; default: load.yaml beside the config")
    parser.add_argument("--recipes", type=Path, metavar="DIR", help="default: recipes/ beside the config, shipped ones")
    parser.add_argument("--at", nargs="+", default=[], metavar="NAME=VALUE", help="which point: conc=64 tp=8 …")
    parser.add_argument("--conc", nargs="+", type=whole(1), metavar="N", help="loads on that server; default: --at's")
    parser.add_argument(
        "--set", dest="changes", action="append", default=[], metavar="NAME=VALUE", help="change the recipe; repeatable"
    )
    parser.add_argument("--against", metavar="KEY", help="compare with this key unchanged; may be KEY itself")
    parser.add_argument(
        "--rounds", type=whole(1, 100), metavar="N", help="launches of each side; default: 1, or 5 pairs"
    )
    parser.add_argument("--hold", action="store_true", help="keep the last server until Ctrl-C")
    parser.add_argument("--out", type=Path, default=Path("prony-out/try"), metavar="DIR", help="default: prony-out/try")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Try, and print what came out. Raises ConfigError, PlanError, LaunchError."""
    from prony.base.clock import SystemClock
    from prony.cli.outcome import print_points
    from prony.recipe.change import read_changes
    from prony.run.trial import try_sides

    changes = read_changes(arguments.changes)
    sides = [_side(arguments, "B" if arguments.against else "A", arguments.key, changes)]
    if arguments.against:
        sides.insert(0, _side(arguments, "A", arguments.against, ()))
    rounds = arguments.rounds or (5 if arguments.against else 1)
    folder = _fresh(arguments.out / arguments.key)
    _announce(arguments, sides, folder)
    clock = SystemClock()
    tried = try_sides(sides, rounds, folder, clock, lambda text: say(text, sys.stderr), arguments.hold)
    print_points([_named(one) for one in tried])
    if arguments.against:
        _compare(tried)
    return 0


def _named(one: "Tried") -> "Row":
    """Return a row under its side and round."""
    return one.row.model_copy(update={"config_key": f"{one.side}{one.round} {one.row.config_key}"})


def _announce(arguments: argparse.Namespace, sides: "Sequence[Side]", folder: Path) -> None:
    if len(sides) > 1:
        told = " ".join(arguments.changes) or "as it is"
        say(f"A: {arguments.against} as it is\nB: {arguments.key} {told}")
    elif arguments.changes:
        say(f"unofficial: {' '.join(arguments.changes)}")
    say(f"kept in {folder}; not in the store")


def _side(arguments: argparse.Namespace, name: str, key: str, changes: "Sequence[Leaf]") -> "Side":
    from prony.run.trial import Side

    return Side(name, _jobs(arguments, key, changes))


def _jobs(arguments: argparse.Namespace, key: str, changes: "Sequence[Leaf]") -> "tuple[Job, ...]":
    """Return one job per concurrency, all on the deployment of the point that --at names."""
    from prony.base.errors import ConfigError
    from prony.cli.inputs import files_digest, find_inputs, read_matrix
    from prony.plan.planner import plan
    from prony.recipe.catalogue import load_catalogue
    from prony.recipe.resolve import resolve
    from prony.recipe.select import only_point
    from prony.spec.load import LoadRules
    from prony.spec.loadfile import load_rules

    config = arguments.config or [Path("master.yaml")]
    if not config[0].exists():
        raise ConfigError(f"{config[0]}: no such file", fix="name the master config with --config")
    values = {**vars(arguments), "config": config, "keys": [key]}
    inputs = find_inputs(argparse.Namespace(**values))
    point = only_point(read_matrix(inputs, unlisted="note").points, arguments.at)
    deployment = resolve(load_catalogue(inputs.recipes), point, changes=changes)
    rules = load_rules(inputs.load) if inputs.load else LoadRules()
    loads = [_at(point, number) for number in arguments.conc or [point.concurrency]]
    launches = plan(
        loads,
        lambda _: deployment,
        rules.model_copy(update={"repeats": 1}),
        config_file=str(config[0]),
        config_digest=files_digest(inputs.configs),
        load_file=str(inputs.load) if inputs.load else "",
    )
    return tuple(job for launch in launches for job in launch.jobs)


def _at(point: "Point", concurrency: int) -> "Point":
    return point.model_copy(update={"concurrency": concurrency})


def _fresh(parent: Path) -> Path:
    """Return a new folder below one, counted up; raises LaunchError when it cannot be made."""
    from prony.base.files import make_folder

    number = 1 + max((int(one.name) for one in parent.glob("[0-9]*") if one.name.isdigit()), default=0)
    make_folder(parent / str(number))
    return (parent / str(number)).resolve()


def _compare(tried: "Sequence[Tried]") -> None:
    """Print the difference of B to A for every concurrency and metric."""
    from prony.cli.columns import Column, print_table
    from prony.measure.paired import paired
    from prony.measure.registry import metric as known

    rows = []
    for conc in sorted({one.row.concurrency for one in tried}):
        for metric, stat in _METRICS:
            values = {
                side: {
                    one.round: one.row.value(metric, stat) or 0.0
                    for one in tried
                    if one.side == side and one.row.concurrency == conc
                }
                for side in ("A", "B")
            }
            both = sorted(values["A"].keys() & values["B"].keys())
            found = paired([values["A"][number] for number in both], [values["B"][number] for number in both])
            if found is None:
                continue
            low, high = found.ci95 or (None, None)
            interval = "needs 3 pairs" if low is None or high is None else f"{low:+.1%} to {high:+.1%}"
            better = (found.difference > 0) == (known(metric).better == "higher")
            told = ("better" if better else "worse") if found.told_apart else "not told apart"
            name = metric if stat == "value" else f"{metric} {stat}"
            rows.append((str(conc), name, f"{found.difference:+.1%}", interval, str(found.pairs), told))
    say()
    columns = (Column("conc", right=True), Column("metric"), Column("B to A", right=True), Column("95 %"))
    print_table((*columns, Column("pairs", right=True), Column("verdict")), rows)
