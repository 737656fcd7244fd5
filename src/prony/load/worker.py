"""The client process: `python -m prony.load.worker FILE` runs one LoadRequest and leaves its event log.

Exit codes: 0 measured (the log tells which requests failed), 3 nothing could be measured, 130 interrupted.
"""

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that nothing here has work for

from prony.base.errors import LaunchError, PronyError
from prony.base.model import read_model
from prony.load.interrupts import Interrupts
from prony.load.progress import Progress, write_progress
from prony.load.request import PREFIX, LoadRequest
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
    file = Path(arguments[0])
    try:
        return _run(file)
    except PronyError as error:
        fault = error
    except MemoryError:
        fault = LaunchError(
            "the load does not fit into this machine's memory", fix="ask for fewer or shorter requests in the load file"
        )
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        fault = own_fault(error, file.parent / "logs" / "client-fault.log")
    sys.stderr.write(f"{PREFIX}{fault}\n")
    return LaunchError.exit_code


def own_fault(error: Exception, log: Path) -> LaunchError:
    """Keep the traceback of a fault of Prony's own in a file, and say so."""
    with contextlib.suppress(OSError):
        log.parent.mkdir(exist_ok=True)
        with log.open("a") as file:
            traceback.print_exception(error, file=file)
    return LaunchError(
        f"the load client itself failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}",
        fix=f"report it with {log}",
    )


def _run(file: Path) -> int:
    request = read_model(file, LoadRequest)
    progress_file = Path(request.progress_file)

    def show(progress: Progress) -> None:
        write_progress(progress_file, progress)

    with Interrupts() as interrupts:
        recording = run_load(request.target, request.load, show, request.watch, request.workers, interrupts)
        if recording.log is not None:  # the signals are still only noted here, so the log is written whole
            write_log(Path(request.events_file), recording.log)
    return INTERRUPTED if recording.stopped else 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
