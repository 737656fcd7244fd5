"""`prony matrix`: what a config may run."""

import argparse
import sys
from typing import TYPE_CHECKING

from prony.cli.arguments import add_config_arguments

if TYPE_CHECKING:
    from prony.spec.matrix import Matrix
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
    listing.add_argument("--json", action="store_true", help="one JSON object per point and line, with its digest")
    listing.set_defaults(run=list_points)


def list_points(arguments: argparse.Namespace) -> int:
    """Print the points as a table or as JSON lines."""
    from prony.cli.inputs import find_inputs, read_matrix

    matrix = read_matrix(find_inputs(arguments))
    if arguments.json:
        _print_json(matrix)
    else:
        _print_table(matrix)
    for line in matrix.left_out:
        print(f"not listed: {line}", file=sys.stderr)
    return 0


def _print_json(matrix: "Matrix") -> None:
    from prony.base.model import canonical_json, digest

    for point in matrix.points:
        plain = point.model_dump(mode="json")
        print(canonical_json({"digest": digest(point), **plain}).decode())


def _print_table(matrix: "Matrix") -> None:
    """Print one line per group of points that differ in their concurrency only."""
    from rich.table import Table

    from prony.cli.console import wide_console

    groups: dict[tuple[str, ...], list[str]] = {}
    for point in matrix.points:
        groups.setdefault(_cells(point), []).append(str(point.concurrency))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("key", "engine", "precision", "runner", "isl/osl", "topology", "spec", "conc"):
        table.add_column(name, overflow="fold")
    for cells, concurrencies in groups.items():
        table.add_row(*cells, " ".join(concurrencies))
    wide_console().print(table)
    print(f"{len(matrix.points)} points")


def _cells(point: "Point") -> tuple[str, ...]:
    workload = f"{point.workload.isl}/{point.workload.osl}" if point.workload.kind == "fixed-seq-len" else "agentic"
    return (
        point.config_key,
        point.framework,
        point.precision,
        point.runner,
        workload,
        point.topology.label,
        point.spec_decoding,
    )
