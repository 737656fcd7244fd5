"""prony job: run one job folder (or several of one launch) by hand, as every executor does."""

import argparse
from pathlib import Path

from prony.cli.arguments import whole
from prony.cli.console import say

_RUN_HELP = """\
Run job folders in this process: start the server once, load it for each folder, write result.json and exit.json.
All folders must need the same server. A folder that has ended before gets a new attempt; what it held moves to
attempts/<n>/.
"""
_RUN_EXAMPLE = """\
example:
  prony job run prony-out/jobs/3f2c9a5be0d14c77

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
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("folder", nargs="+", type=Path, metavar="DIR", help="a folder with a job.json")
    run.add_argument("--attempt", type=whole(1), metavar="N", help="claim this attempt (default: the next free one)")
    run.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from prony.base.clock import SystemClock
    from prony.run.folder import JobFolder
    from prony.run.job import run_jobs

    code = run_jobs(arguments.folder, arguments.attempt, SystemClock())
    for path in arguments.folder:
        record = JobFolder(path).exit_record()
        if record is not None:
            told = f": {record.message}" if record.message else ""
            say(f"{path}: {record.status}{told}")
            if record.fix:
                say(f"  what to do: {record.fix}")
    return code
