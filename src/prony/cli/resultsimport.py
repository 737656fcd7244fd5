"""`prony results import`: what came in, what could not, and what is doubtful about it."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.base.errors import ConfigError, LaunchError
from prony.base.finding import Finding
from prony.base.units import counted
from prony.cli.arguments import command
from prony.cli.console import say
from prony.cli.findings import print_json
from prony.measure.result import Row
from prony.store.ingest import read_sweep
from prony.store.published import Import, read_published
from prony.store.store import Receipt, Store, open_store

_TOP = 5


@dataclass(frozen=True)
class Verdicts:
    """How many of some rows a verdict doubts or makes unusable, and how often each rule was broken."""

    warn: int
    invalid: int
    rules: dict[str, int]


def verdicts(rows: Sequence[Row]) -> Verdicts:
    """Count rows by their gravest verdict, and rows per rule, most frequent first."""
    loud = [{one.rule for one in row.verdicts if one.severity in ("warn", "invalid")} for row in rows]
    invalid = sum(not row.valid for row in rows)
    rules = Counter(rule for found in loud for rule in found)
    return Verdicts(sum(map(bool, loud)) - invalid, invalid, dict(rules.most_common()))


@dataclass(frozen=True)
class _Done:
    """One file or sweep that was ingested."""

    receipt: Receipt
    found: tuple[Finding, ...]
    rows: tuple[Row, ...]


def import_all(arguments: argparse.Namespace) -> int:
    """Read every file before anything is written, then ingest them one by one. Returns 3 when some was damaged."""
    sweeps = [path for path in arguments.file if (path / "jobs").is_dir()]
    read = {path: read_published(path) for path in arguments.file if path not in sweeps}
    with open_store(arguments.store) as store:
        done = [_ingested(store, path, read.get(path)) for path in arguments.file]
    if arguments.json:
        print_json([_plain(one) for one in done])
    else:
        for one in done:
            _tell(one, arguments.store)
    if not any(one.receipt.added + one.receipt.changed + one.receipt.unchanged for one in done):
        raise ConfigError(
            "nothing was imported: no row could be read",
            fix="look at the findings above; each names the row and the reason",
        )
    if not arguments.json:
        listing = command("results", "list", store=arguments.store)
        say(f"next: {listing}   or   {command('report', store=arguments.store)}")
    lost = sum(finding.severity == "error" for one in done for finding in one.found)
    if lost:
        say(f"prony: {lost} could not be imported: look at the errors above", file=sys.stderr)
    return LaunchError.exit_code if lost else 0


def _ingested(store: Store, path: Path, read: Import | None) -> _Done:
    if read is not None:
        return _Done(store.add(read.rows, source=str(path), found=read.findings), read.findings, read.rows)
    sweep, before = read_sweep(path), set(store.findings())
    receipt = store.add(sweep.rows, source=str(path), found=sweep.findings)
    news = (found for found in store.findings() if found not in before and found not in sweep.findings)
    return _Done(receipt, (*sweep.findings, *news), sweep.rows)


def _plain(done: _Done) -> dict[str, Any]:
    judged = verdicts(done.rows)
    return {
        **done.receipt.model_dump(),
        "verdicts": {"rows_warn": judged.warn, "rows_invalid": judged.invalid, "rules": judged.rules},
        "found": [one.model_dump(mode="json") for one in done.found],
    }


def _tell(done: _Done, store: str) -> None:
    receipt, judged = done.receipt, verdicts(done.rows)
    say(f"{receipt.source}: {receipt.added} new, {receipt.changed} with new content, {receipt.unchanged} known already")
    for one in done.found:
        say(f"  {one.severity} [{one.rule}] {one.message}")
    if any("kept as a finding" in one.message for one in done.found):
        say(f"  findings are listed, with the values they keep, by: {command('results', 'findings', store=store)}")
    if judged.rules:
        top = ", ".join(f"{rule} {count}" for rule, count in list(judged.rules.items())[:_TOP])
        more = f", and {counted(len(judged.rules) - _TOP, 'rule')} more" if len(judged.rules) > _TOP else ""
        doubtful = counted(judged.warn, "result") + " with a warning"
        say(f"  verdicts: {counted(judged.invalid, 'result')} invalid, {doubtful} (rows per rule: {top}{more})")
