"""`prony run`: sweep a config on this machine and show what came out."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_config_arguments, add_plan_arguments, add_store_argument

if TYPE_CHECKING:
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
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_config_arguments(parser)
    add_plan_arguments(parser)
    add_store_argument(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"folder of this sweep; default: {OUT_ROOT}/<config>")
    parser.add_argument("--resume", action="store_true", help="go on with the sweep in that folder")
    parser.add_argument("--plain", action="store_true", help="one line per event instead of a live view")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plan, sweep, keep, show. Returns the worst exit code of the jobs."""
    from prony.base.clock import SystemClock
    from prony.cli.inputs import find_inputs, read_launches, read_matrix
    from prony.cli.live import view
    from prony.run.executors.local import LocalExecutor
    from prony.run.sweep import Sweep, drive

    inputs = find_inputs(arguments)
    matrix = read_matrix(inputs)
    launches = read_launches(inputs, matrix)
    out = choose_out(arguments.out, inputs.configs[0], resume=arguments.resume)
    jobs = sum(len(launch.jobs) for launch in launches)
    print(f"{jobs} points on {len(launches)} server starts → {out}")
    for line in matrix.left_out:
        print(f"left out: {line}")
    with (Sweep.open if arguments.resume else Sweep.create)(out, launches) as sweep:
        with view(plain=arguments.plain) as show:
            code = drive(sweep, LocalExecutor(), SystemClock(), show)
        _show_outcome(sweep, out, arguments)
    return code


def choose_out(asked: Path | None, config: Path, *, resume: bool) -> Path:
    """Return the sweep's folder: the asked one, else prony-out/<config>[-N], the newest of them when resuming."""
    if asked is not None:
        return asked
    name = config.resolve().parent.name if config.stem == "master" else config.stem
    number = 1
    while (_numbered(name, number) / "sweep.db").exists():
        number += 1
    return _numbered(name, max(1, number - 1) if resume else number)


def _numbered(name: str, number: int) -> Path:
    return OUT_ROOT / (name if number == 1 else f"{name}-{number}")


def _show_outcome(sweep: "Sweep", out: Path, arguments: argparse.Namespace) -> None:
    """Keep what was measured, print it and what went wrong, write the report, and say what to type next."""
    from datetime import UTC, datetime

    from prony.cli.outcome import print_faults, print_points
    from prony.store.ingest import finished_row, ingest_sweep
    from prony.store.store import open_store
    from prony.web.report import write_report

    with open_store(arguments.store) as store:
        ingest_sweep(store, out)
        rows = store.rows()
    measured = [row for folder in sweep.finished() if (row := finished_row(folder)) is not None]
    print_points(measured)
    snapshot = sweep.snapshot()
    print_faults(snapshot)
    report = out / "report.html"
    write_report(rows, report, title=f"Prony: {out.name}", now=datetime.now(UTC))
    store_option = "" if arguments.store == str(OUT_ROOT / "store.db") else f" --store {arguments.store}"
    print(f"\nreport: {report} (opens offline)   results: {arguments.store}")
    again = snapshot.count("planned", "cancelled", "failed", "timeout")
    print(f"next: prony serve{store_option}" if not again else f"next: {_resume_command(arguments, out)}")


def _resume_command(arguments: argparse.Namespace, out: Path) -> str:
    configs = " ".join(str(path) for path in arguments.config)
    keys = f" --keys {' '.join(repr(key) for key in arguments.keys)}" if arguments.keys else ""
    return f"prony run {configs}{keys} --out {out} --resume"
