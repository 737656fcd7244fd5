"""prony job: run one job folder (or several of one launch) by hand, as every executor does."""

import argparse
from pathlib import Path

from prony.cli.arguments import command, whole
from prony.cli.console import say

_RUN_HELP = """\
Run job folders in this process: start the server once, load it for each folder, write result.json and exit.json.
All folders must need the same server. A folder that has ended before gets a new attempt; what it held moves to
attempts/<n>/.
"""
_RUN_EXAMPLE = """\
examples:
  prony job run prony-out/local/jobs/3f2c9a5be0d14c77
  prony job run prony-out/local/jobs/3f2c

exit codes: 0 done, 2 the folder is not usable, 3 the launch failed, 4 a result is not valid, 130 interrupted
"""


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony job`."""
    parser = nouns.add_parser("job", help="run one job folder by hand", description="Work with job folders.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    run = verbs.add_parser(
        "run",
        help="run job folders of one launch",
        description=_RUN_HELP,
        epilog=_RUN_EXAMPLE,
    )
    run.add_argument(
        "folder", nargs="+", type=Path, metavar="DIR", help="a folder with a job.json, or the start of its name"
    )
    run.add_argument("--attempt", type=whole(1), metavar="N", help="claim this attempt (default: the next free one)")
    run.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from prony.base.clock import SystemClock
    from prony.run.folder import JobFolder
    from prony.run.job import run_jobs

    folders = [_named(path) for path in arguments.folder]
    code = run_jobs(folders, arguments.attempt, SystemClock())
    measured = []
    for path in folders:
        record = JobFolder(path).exit_record()
        if record is None:
            continue
        told = f": {record.message}" if record.message else ""
        say(f"{path}: {record.status}{told}")
        if record.fix:
            say(f"  what to do: {record.fix}")
        measured += [path] if record.status in ("succeeded", "invalid") else []
    _say_next(measured)
    return code


def _named(path: Path) -> Path:
    """Return the folder, also where only the start of its name is given. Raises ConfigError when several fit."""
    from prony.base.errors import ConfigError

    start = path.name.removesuffix("…").removesuffix("...")
    if path.exists() or not start or not path.parent.is_dir():
        return path
    found = sorted(one for one in path.parent.iterdir() if one.name.startswith(start) and (one / "job.json").exists())
    if len(found) > 1:
        raise ConfigError(
            f"{path}: {len(found)} job folders start so",
            allowed=", ".join(one.name for one in found[:8]),
            fix="give more of the name",
        )
    return found[0] if found else path


def _say_next(measured: list[Path]) -> None:
    """Say how to get new results into the store: a run by hand leaves them in their folders."""
    sweeps = dict.fromkeys(path.absolute().parent for path in measured)
    for jobs in sweeps:
        if jobs.name != "jobs":
            say(f"the store takes results from below DIR/jobs only; this one stays in {jobs}")
            continue
        sweep = jobs.parent.relative_to(Path.cwd()) if jobs.is_relative_to(Path.cwd()) else jobs.parent
        say(f"not in the store yet; next: {command('results', 'import', sweep)}")
