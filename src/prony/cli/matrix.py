"""`prony matrix`: what a config may run."""

import argparse
import sys
from typing import TYPE_CHECKING

from prony.cli.arguments import add_config_arguments, whole
from prony.cli.compat import add_compat_parsers
from prony.cli.console import print_data, say
from prony.cli.matrixdiff import add_diff_parser
from prony.cli.priority import add_priority_parsers

if TYPE_CHECKING:
    from prony.spec.matrix import Matrix, Wanted
    from prony.spec.point import Point


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony matrix list`."""
    parser = nouns.add_parser("matrix", help="expand configs to points", description="Expand configs to points.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = verbs.add_parser(
        "list",
        help="list the points of a config",
        description="List every point that a config declares, in file order, without running anything.",
        epilog="example: prony matrix list examples/local/master.yaml --keys '*-draft'",
    )
    add_config_arguments(listing)
    _add_filters(listing)
    listing.add_argument("--json", action="store_true", help="one JSON object per point and line, with its digest")
    listing.set_defaults(run=list_points)
    add_compat_parsers(verbs)
    add_diff_parser(verbs)
    add_priority_parsers(verbs)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runners", nargs="+", metavar="LABEL", help="only keys of these runner labels; globs")
    parser.add_argument("--nodes", nargs="+", metavar="NODE", help="one point per node that matches; globs")
    kinds = ("fixed-seq-len", "agentic-coding")
    parser.add_argument("--scenarios", nargs="+", choices=kinds, metavar="KIND", help=" or ".join(kinds))
    parser.add_argument("--min-conc", type=whole(1), metavar="N", help="drop lower concurrencies")
    parser.add_argument("--max-conc", type=whole(1), metavar="N", help="drop higher concurrencies")
    parser.add_argument(
        "--evals",
        choices=("default", "none", "only", "all"),
        default="default",
        help="which points run evals too: by the default rule, none, only those points, all that can",
    )


def _wanted(arguments: argparse.Namespace) -> "Wanted":
    from prony.spec.matrix import Wanted

    def globs(values: list[str] | None) -> tuple[str, ...] | None:
        return None if values is None else tuple(values)

    return Wanted(
        runners=globs(arguments.runners),
        nodes=globs(arguments.nodes),
        scenarios=globs(arguments.scenarios),
        min_conc=arguments.min_conc,
        max_conc=arguments.max_conc,
        evals=arguments.evals,
    )


def list_points(arguments: argparse.Namespace) -> int:
    """Print the points as a table or as JSON lines."""
    from prony.cli.inputs import find_inputs, read_matrix

    matrix = read_matrix(find_inputs(arguments), _wanted(arguments), unlisted="note")
    if arguments.json:
        _print_json(matrix)
    else:
        _print_table(matrix)
    for line in matrix.left_out:
        say(f"not listed: {line}", sys.stderr)
    for line in matrix.notes:
        say(f"note: {line}", sys.stderr)
    return 0


def _print_json(matrix: "Matrix") -> None:
    from prony.base.model import canonical_json, digest

    for point in matrix.points:
        plain = point.model_dump(mode="json")
        print_data(canonical_json({"digest": digest(point), **plain}).decode() + "\n")


def _print_table(matrix: "Matrix") -> None:
    """Print one line per group of points that differ in their concurrency only."""
    from prony.base.units import counted
    from prony.cli.columns import Column, print_table

    groups: dict[tuple[str, ...], list[str]] = {}
    for point in matrix.points:
        groups.setdefault(_cells(point), []).append(str(point.concurrency))
    columns = (
        Column("key", least=24),
        Column("engine"),
        Column("precision", drop=1),
        Column("runner", drop=2),
        Column("isl/osl"),
        Column("topology", least=12),
        Column("spec", drop=3),
        Column("conc", least=8, wraps=True),
    )
    print_table(columns, [(*cells, " ".join(concurrencies)) for cells, concurrencies in groups.items()])
    say(counted(len(matrix.points), "point"))


def _cells(point: "Point") -> tuple[str, ...]:
    workload = f"{point.workload.isl}/{point.workload.osl}" if point.workload.kind == "fixed-seq-len" else "agentic"
    return (
        point.config_key,
        point.framework,
        point.precision,
        point.runner,
        workload,
        point.topology.label + ("" if point.kv_offload.mode == "none" else f" KV {point.kv_offload.mode}"),
        point.spec_decoding,
    )
