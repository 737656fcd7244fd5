"""The client process: `python -m prony.load.worker FILE` runs one LoadRequest and leaves its event log.

Exit codes: 0 measured (the log tells which requests failed), 3 nothing could be measured, 130 interrupted.
"""

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import uvloop

from prony.base.errors import LaunchError, PronyError
from prony.base.model import read_model
from prony.load.progress import Progress, write_progress
from prony.load.request import LoadRequest
from prony.load.run import run_load
from prony.measure.storage import write_log

INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run the load request in a file and return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m prony.load.worker FILE\n")
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        return _run(Path(arguments[0]))
    except PronyError as error:
        sys.stderr.write(f"{error}\n")
        return LaunchError.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(file: Path) -> int:
    request = read_model(file, LoadRequest)
    progress_file = Path(request.progress_file)

    def report(progress: Progress) -> None:
        write_progress(progress_file, progress)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        recording = runner.run(run_load(request.target, request.load, report))
        if recording.log is not None:  # inside the runner: its signal handlers still hold, so the log is written whole
            write_log(Path(request.events_file), recording.log)
    return INTERRUPTED if recording.stopped else 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
