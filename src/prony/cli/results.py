"""`prony results`: what is known, in a terminal or for a program."""

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_store_argument, command, whole
from prony.cli.console import print_data, say

if TYPE_CHECKING:
    from prony.measure.result import Row
    from prony.store.store import Store

_FILTERS = ("model", "hardware", "framework", "precision")


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony results {list,show,import,findings,export}`."""
    parser = nouns.add_parser(
        "results",
        help="list, show, import and export results",
        description="List, show, import and export results.",
        epilog="example: prony results list --hardware cpu",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    _add_list(verbs)
    _add_show(verbs)
    _add_import(verbs)
    _add_findings(verbs)
    _add_export(verbs)


def _add_list(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    verb = verbs.add_parser(
        "list",
        help="list results",
        description="List the latest version of every result.",
        epilog="example: prony results list --model smollm2 --conc 4",
    )
    _add_filters(verb)
    verb.add_argument("--json", action="store_true", help="a JSON array: identity, verdicts, the table's numbers in SI")
    verb.set_defaults(run=list_results)


def _add_show(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    verb = verbs.add_parser(
        "show",
        help="show all that is known of one result",
        description="Show one result: numbers, verdicts, where it comes from.",
        epilog="example: prony results show 3f2a",
    )
    verb.add_argument("key", metavar="KEY", help="a key, or the start of one")
    add_store_argument(verb)
    verb.add_argument("--json", action="store_true", help="a JSON array of all its versions, oldest first")
    verb.set_defaults(run=show_result)


def _add_import(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    verb = verbs.add_parser(
        "import",
        help="import published results, or a sweep's job folders",
        description="Import published InferenceX rows (dashboard API JSON, raw agg_*.json) or the directory of a sweep."
        " Importing the same again changes nothing.",
        epilog="example: prony results import benchmarks.json agg_*.json",
    )
    verb.add_argument("file", nargs="+", type=Path, metavar="FILE", help="a JSON file, or a sweep's directory")
    add_store_argument(verb)
    verb.add_argument("--json", action="store_true", help="a JSON array of receipts with their findings")
    verb.set_defaults(run=import_files)


def _add_findings(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    verb = verbs.add_parser(
        "findings",
        help="list what imports found",
        description="List what imports found: values that have no place in a row (with the values), rows that could "
        "not be read, results that came again with other numbers. Verdicts on results: prony results list, and show.",
        epilog="example: prony results findings --json",
    )
    add_store_argument(verb)
    verb.add_argument("--json", action="store_true", help="a JSON array of whole findings, with what they rest on")
    verb.set_defaults(run=list_findings)


def _add_export(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    verb = verbs.add_parser(
        "export",
        help="write results to standard output",
        description="Write every number of every result to standard output; units stand in the CSV headers.",
        epilog="example: prony results export --csv --hardware mi355x > mi355x.csv",
    )
    _add_filters(verb)
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="one line per result (the default)")
    form.add_argument("--json", action="store_true", help="a JSON array of whole rows")
    verb.set_defaults(run=export_results)


def _add_filters(verb: argparse.ArgumentParser) -> None:
    for name in _FILTERS:
        more = ", or a part of the name that only one has" if name == "model" else ""
        verb.add_argument(f"--{name}", nargs="+", default=(), metavar=name.upper(), help=f"only these{more}")
    verb.add_argument("--conc", nargs="+", type=whole(1), default=(), metavar="N", help="concurrency")
    verb.add_argument("--valid", action="store_true", help="leave out results that a verdict makes unusable")
    add_store_argument(verb)


def list_results(arguments: argparse.Namespace) -> int:
    """Print the results that match."""
    with _open(arguments) as store:
        rows = _selected(store, arguments)
        versions = {one.key: one.version for one in store.versions() if one.shown}
    if arguments.json:
        from prony.cli.rowjson import listed

        _print_json(listed(rows, versions))
        return 0
    from prony.cli.rowtable import print_rows

    print_rows(rows, versions)
    show = command("results", "show", rows[0].key[:10], store=arguments.store)
    say(f"next: {show}   or   {command('report', store=arguments.store)}")
    return 0


def show_result(arguments: argparse.Namespace) -> int:
    """Print one result."""
    with _open(arguments) as store:
        row = store.row(arguments.key)
        history = store.history(row.key)
        versions = store.versions(row.key)
    if arguments.json:
        _print_json([version.model_dump(mode="json") for version in history])
        return 0
    from prony.cli.rowdetail import print_row

    print_row(row)
    if len(versions) > 1:
        from prony.cli.rowversions import print_versions

        say(f"\n{len(versions)} versions:")
        print_versions(versions)
        show = command("results", "show", row.key[:10], "--json", store=arguments.store)
        say(f"all numbers of all versions: {show}")
    return 0


def import_files(arguments: argparse.Namespace) -> int:
    """Import files and sweeps. Returns 3 when some was damaged."""
    from prony.cli.resultsimport import import_all

    return import_all(arguments)


def list_findings(arguments: argparse.Namespace) -> int:
    """Print what imports found."""
    from prony.cli.findings import print_findings, summary

    with _open(arguments) as store:
        found = store.findings()
    if arguments.json:
        _print_json([one.model_dump(mode="json") for one in found])
        return 0
    print_findings(found)
    say(summary(found))
    return 0


def export_results(arguments: argparse.Namespace) -> int:
    """Write the results that match as CSV or JSON."""
    with _open(arguments) as store:
        rows = _selected(store, arguments)
    if arguments.json:
        _print_json([row.model_dump(mode="json") for row in rows])
        return 0
    from prony.cli.rowcsv import write_csv

    text = io.StringIO()
    write_csv(rows, text)
    print_data(text.getvalue())
    return 0


def _selected(store: "Store", arguments: argparse.Namespace) -> "tuple[Row, ...]":
    """Return the rows that match. Raises ConfigError that says what there is when none does."""
    from prony.base.errors import ConfigError
    from prony.base.units import counted
    from prony.cli.rowfilter import row_filter

    everything = store.select()
    for one in everything.unreadable:
        say(f"prony: {one}", file=sys.stderr)
    if not everything.rows:
        raise ConfigError(
            f"{arguments.store}: no results yet",
            fix="measure with: prony run CONFIG   or import with: prony results import FILE",
        )
    rows = store.rows(row_filter(arguments, everything.rows))
    if not rows:
        raise ConfigError(
            f"{arguments.store}: none of {counted(len(everything.rows), 'result')} has all of that together",
            fix="give fewer or other filters",
        )
    return rows


def _open(arguments: argparse.Namespace) -> "Store":
    from prony.store.store import open_store

    return open_store(arguments.store, create=False)


def _print_json(value: list[dict[str, object]]) -> None:
    from prony.cli.findings import print_json

    print_json(value)
