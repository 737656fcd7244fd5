"""`prony results`: what is known, in a terminal or for a program."""

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_store_argument, command, whole
from prony.cli.console import print_data, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prony.base.finding import Finding
    from prony.measure.result import Row
    from prony.store.published import Import
    from prony.store.store import Receipt, RowFilter, Store

_FILTERS = ("model", "hardware", "framework", "precision")


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony results {list,show,import,export}`."""
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
    _add_export(verbs)


def _add_list(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    verb = verbs.add_parser(
        "list",
        help="list results",
        description="List the latest version of every result.",
        epilog="example: prony results list --model smollm2 --conc 4",
    )
    _add_filters(verb)
    verb.add_argument("--json", action="store_true", help="one JSON array: key, validity and the table's columns in SI")
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
        verb.add_argument(f"--{name}", nargs="+", default=(), metavar=name.upper())
    verb.add_argument("--conc", nargs="+", type=whole(1), default=(), metavar="N", help="concurrency")
    verb.add_argument("--valid", action="store_true", help="leave out results that a verdict makes unusable")
    add_store_argument(verb)


def list_results(arguments: argparse.Namespace) -> int:
    """Print the results that match."""
    rows = _selected(arguments)
    if arguments.json:
        from prony.view.table import table

        made = table(rows)
        names = [column.key for column in made.columns]
        _print_json(
            [{"key": one.key, "valid": one.valid, **dict(zip(names, one.cells, strict=True))} for one in made.rows]
        )
        return 0
    from prony.cli.rowtable import print_rows

    print_rows(rows)
    show = command("results", "show", rows[0].key[:10], store=arguments.store)
    say(f"next: {show}   or   {command('report', store=arguments.store)}")
    return 0


def show_result(arguments: argparse.Namespace) -> int:
    """Print one result."""
    with _open(arguments) as store:
        row = store.row(arguments.key)
        versions = store.history(row.key)
    if arguments.json:
        _print_json([version.model_dump(mode="json") for version in versions])
        return 0
    from prony.cli.rowdetail import print_row

    print_row(row)
    if len(versions) > 1:
        show = command("results", "show", row.key[:10], "--json", store=arguments.store)
        say(f"\nversion {len(versions)}; {len(versions) - 1} earlier kept: {show}")
    return 0


def import_files(arguments: argparse.Namespace) -> int:
    """Read every file before anything is written, then ingest them one by one. Returns 3 when some was damaged."""
    from prony.base.errors import ConfigError, LaunchError
    from prony.store.published import read_published
    from prony.store.store import open_store

    sweeps = [path for path in arguments.file if (path / "jobs").is_dir()]
    read = {path: read_published(path) for path in arguments.file if path not in sweeps}
    with open_store(arguments.store) as store:
        done = [_ingested(store, path, read.get(path)) for path in arguments.file]
    if arguments.json:
        _print_json([
            {**receipt.model_dump(), "found": [one.model_dump(mode="json") for one in found]} for receipt, found in done
        ])  # fmt: skip
    else:
        for receipt, found in done:
            _tell(receipt, found)
    if not any(receipt.added + receipt.changed + receipt.unchanged for receipt, _ in done):
        raise ConfigError(
            "nothing was imported: no row could be read",
            fix="look at the findings above; each names the row and the reason",
        )
    if not arguments.json:
        listing = command("results", "list", store=arguments.store)
        say(f"next: {listing}   or   {command('report', store=arguments.store)}")
    lost = sum(one.severity == "error" for _, found in done for one in found)
    if lost:
        say(f"prony: {lost} could not be imported: look at the errors above", file=sys.stderr)
    return LaunchError.exit_code if lost else 0


def export_results(arguments: argparse.Namespace) -> int:
    """Write the results that match as CSV or JSON."""
    rows = _selected(arguments)
    if arguments.json:
        _print_json([row.model_dump(mode="json") for row in rows])
        return 0
    from prony.cli.rowcsv import write_csv

    text = io.StringIO()
    write_csv(rows, text)
    print_data(text.getvalue())
    return 0


def _ingested(store: "Store", path: Path, read: "Import | None") -> "tuple[Receipt, tuple[Finding, ...]]":
    if read is not None:
        return store.add(read.rows, source=str(path), found=read.findings), read.findings
    from prony.store.ingest import read_sweep

    sweep, before = read_sweep(path), set(store.findings())
    receipt = store.add(sweep.rows, source=str(path), found=sweep.findings)
    news = (found for found in store.findings() if found not in before and found not in sweep.findings)
    return receipt, (*sweep.findings, *news)


def _tell(receipt: "Receipt", found: "Sequence[Finding]") -> None:
    say(f"{receipt.source}: {receipt.added} new, {receipt.changed} with new content, {receipt.unchanged} known already")
    for one in found:
        say(f"  {one.severity} [{one.rule}] {one.message}")


def _selected(arguments: argparse.Namespace) -> "tuple[Row, ...]":
    from prony.base.errors import ConfigError
    from prony.base.units import counted

    where = _filter(arguments)
    with _open(arguments) as store:
        selected = store.select(where)
        rows = selected.rows
        total = 0 if rows else len(store.rows())
    for one in selected.unreadable:
        say(f"prony: {one}", file=sys.stderr)
    if not rows and total:
        raise ConfigError(
            f"{arguments.store}: none of {counted(total, 'result')} matches", fix="give fewer or other filters"
        )
    if not rows:
        raise ConfigError(
            f"{arguments.store}: no results yet",
            fix="measure with: prony run CONFIG   or import with: prony results import FILE",
        )
    return rows


def _filter(arguments: argparse.Namespace) -> "RowFilter":
    from prony.store.store import RowFilter

    return RowFilter(
        model=tuple(arguments.model),
        hardware=tuple(arguments.hardware),
        framework=tuple(arguments.framework),
        precision=tuple(arguments.precision),
        concurrency=tuple(arguments.conc),
        valid_only=arguments.valid,
    )


def _open(arguments: argparse.Namespace) -> "Store":
    from prony.store.store import open_store

    return open_store(arguments.store, create=False)


def _print_json(value: list[dict[str, object]]) -> None:
    import orjson

    print_data(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())
