"""Becomes a program that dies with the process that started it: `guard.py PARENT PROGRAM ARGV...`, run as a script.

It stands between fork and exec, where code of a process that has threads must not run. It imports nothing of Prony and
nothing that is slow, and leaves the program the environment as it came, not as this interpreter changed it.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
CANNOT_EXEC = 127


def main() -> None:
    """Replace this process by the program; exit at once when the parent has gone already."""
    parent, program, *argv = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit(1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # this interpreter ignores them, and exec would keep that
        signal.signal(number, signal.SIG_DFL)
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - pathlib is slow to import
        entries = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    try:
        os.execve(program, argv, {name: value for name, _, value in entries})
    except OSError as error:
        sys.stderr.write(f"{program}: {error.strerror}\n")
        sys.exit(CANNOT_EXEC)


if __name__ == "__main__":
    main()
