"""`prony report`: the store as one HTML file that opens offline."""

import argparse
import sys
from pathlib import Path

from prony.cli.arguments import DEFAULT_STORE, add_store_argument

DEFAULT_OUT = DEFAULT_STORE.parent / "report.html"


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `report`."""
    parser = nouns.add_parser(
        "report",
        help="write the results as one HTML file that opens offline",
        description="Write the results as one self-contained HTML file: charts, tables and provenance, no network.",
        epilog="example: prony report --store prony-out/store.db --out report.html",
    )
    add_store_argument(parser)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, metavar="FILE", help=f"default: {DEFAULT_OUT}")
    parser.add_argument("--title", default="Prony", metavar="TEXT", help="heading of the page; default: Prony")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the report and say where it is."""
    from prony.base.clock import SystemClock
    from prony.base.files import make_folder
    from prony.base.units import counted
    from prony.cli.console import say
    from prony.store.store import open_store
    from prony.web.report import write_report

    with open_store(arguments.store, create=False) as store:
        selected = store.select()
    rows = selected.rows
    for one in selected.unreadable:
        say(f"prony: {one}", file=sys.stderr)
    if arguments.out == DEFAULT_OUT:
        make_folder(DEFAULT_OUT.parent)
    write_report(rows, arguments.out, arguments.title, SystemClock().wall())
    say(f"{arguments.out}: {counted(len(rows), 'row')}; open it in a browser")
    return 0
