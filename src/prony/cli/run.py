"""`prony run`: sweep a config on this machine and show what came out."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prony.base.errors import PronyError
from prony.cli.arguments import add_config_arguments, add_plan_arguments, add_store_argument, again, command
from prony.cli.console import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prony.measure.result import Row
    from prony.run.sweep import Sweep

OUT_ROOT = Path("prony-out")


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony run`."""
    parser = nouns.add_parser(
        "run",
        help="sweep a config on this machine",
        description="Start each server of a config, load it, measure it; then print a table and write a report.",
        epilog="examples:\n"
        "  prony run examples/local/master.yaml\n"
        "  prony run examples/local/master.yaml --keys '*-draft' --out prony-out/draft\n"
        "  prony run examples/local/master.yaml --resume",
    )
    add_config_arguments(parser)
    add_plan_arguments(parser)
    add_store_argument(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"folder of this sweep; default: {OUT_ROOT}/<config>")
    parser.add_argument("--resume", action="store_true", help="go on with the sweep in that folder")
    parser.add_argument("--plain", action="store_true", help="one line per event instead of a live view")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plan, sweep, keep, show. Returns the worst exit code of the jobs, or that of a fault in keeping them."""
    from prony.base.clock import SystemClock
    from prony.base.units import counted
    from prony.cli.inputs import find_inputs, read_launches, read_matrix, runnable
    from prony.cli.live import view
    from prony.run.executors.local import LocalExecutor
    from prony.run.sweep import Sweep, drive

    inputs = find_inputs(arguments)
    matrix = runnable(read_matrix(inputs))
    launches = read_launches(inputs, matrix)
    out = choose_out(arguments.out, inputs.configs[0], resume=arguments.resume)
    _check_store(arguments.store)
    points = counted(sum(len(launch.jobs) for launch in launches), "point")
    with (Sweep.open if arguments.resume else Sweep.create)(out, launches) as sweep:
        say(f"{points} on {counted(len(launches), 'server start')} → {out}")
        for line in matrix.left_out:
            say(f"left out: {line}")
        for line in matrix.notes:
            say(f"note: {line}")
        with view(plain=arguments.plain) as show:
            code = drive(sweep, LocalExecutor(), SystemClock(), show)
        kept = _show_outcome(sweep, out, arguments)
    return code or kept


def choose_out(asked: Path | None, config: Path, *, resume: bool) -> Path:
    """Return the sweep's folder: the asked one, else prony-out/<config>[-N], the newest of them when resuming."""
    from prony.run.ledger import is_written

    if asked is not None:
        return asked
    name = config.resolve().parent.name if config.stem == "master" else config.stem
    number = 1
    while is_written(_numbered(name, number) / "sweep.db"):
        number += 1
    return _numbered(name, max(1, number - 1) if resume else number)


def _numbered(name: str, number: int) -> Path:
    return OUT_ROOT / (name if number == 1 else f"{name}-{number}")


def _check_store(place: str) -> None:
    """See that results can be kept before anything is measured. Raises LaunchError and ConfigError."""
    from prony.store.store import open_store

    with open_store(place) as store:
        store.add((), source="")  # adds nothing, but takes the right to write


def _show_outcome(sweep: "Sweep", out: Path, arguments: argparse.Namespace) -> int:
    """Print what was measured and what went wrong, keep it, write the report, and say what to type next.

    Returns 0, or the exit code of the first fault in keeping; one fault hides nothing else.
    """
    from prony.cli.outcome import print_faults, print_interrupted, print_points

    faults: list[PronyError] = []
    measured = _measured(sweep, faults)
    print_points(measured)
    snapshot = sweep.snapshot()
    print_faults(snapshot)
    print_interrupted(snapshot)
    rows = _kept(out, arguments.store, faults)
    report = _reported(rows or measured, out, faults)
    for fault in faults:
        say(f"\nprony: {fault}", sys.stderr)
    say("\n" + "   ".join([*report, *([] if rows is None else [f"results: {arguments.store}"])]))
    if snapshot.count("planned", "cancelled", "failed", "timeout"):
        say(f"next: {again(arguments, out)}")
    elif rows is None:
        say(f"next: {command('results', 'import', out, store=arguments.store)}")
    else:
        say(f"next: {command('serve', store=arguments.store)}")
    return faults[0].exit_code if faults else 0


def _measured(sweep: "Sweep", faults: "list[PronyError]") -> "list[Row]":
    from prony.store.ingest import finished_row

    rows = []
    for folder in sweep.finished():
        try:
            row = finished_row(folder)
        except PronyError as fault:
            faults.append(fault)
        else:
            rows += [row] if row is not None else []
    return rows


def _kept(out: Path, place: str, faults: "list[PronyError]") -> "Sequence[Row] | None":
    """Ingest the sweep, say what it replaced, and return all that the store holds; None when the store fails."""
    from prony.cli.rowversions import changes
    from prony.store.ingest import ingest_sweep
    from prony.store.store import open_store

    try:
        with open_store(place) as store:
            before = {row.key: row for row in store.rows()}
            ingest_sweep(store, out)
            rows = store.rows()
    except PronyError as fault:
        faults.append(fault)
        return None
    for line in changes(before, rows):
        say(f"measured again: {line}")
    return rows


def _reported(rows: "Sequence[Row]", out: Path, faults: "list[PronyError]") -> list[str]:
    """Write the report and return where it is; nothing when it cannot be written."""
    from prony.base.clock import SystemClock
    from prony.store.store import Selection
    from prony.web.report import write_report

    report = out / "report.html"
    try:
        write_report(Selection(tuple(rows), ()), report, title=f"Prony: {out.resolve().name}", now=SystemClock().wall())
    except PronyError as fault:
        faults.append(fault)
        return []
    return [f"report: {report} (opens offline)"]
