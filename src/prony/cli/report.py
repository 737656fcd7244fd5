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
    """Write the report and say where it is. Raises ConfigError when there is nothing to report."""
    from prony.base.clock import SystemClock
    from prony.base.errors import ConfigError
    from prony.base.files import make_folder
    from prony.base.units import counted
    from prony.cli.console import say
    from prony.store.store import open_store
    from prony.web.report import write_report

    with open_store(arguments.store, create=False) as store:
        selected, versions = store.select(), store.versions()
    rows = selected.rows
    for one in selected.unreadable:
        say(f"prony: {one}", file=sys.stderr)
    if not rows:
        raise ConfigError(
            f"{arguments.store}: no results yet" if not selected.unreadable else f"{arguments.store}: none is readable",
            fix="measure with: prony run CONFIG   or import with: prony results import FILE",
        )
    if arguments.out == DEFAULT_OUT:
        make_folder(DEFAULT_OUT.parent)
    write_report(selected, arguments.out, arguments.title, SystemClock().wall(), versions)
    say(f"{arguments.out}: {counted(len(rows), 'row')}; open it in a browser")
    return 0
