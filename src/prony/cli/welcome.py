"""Bare `prony`: what it found here, and the next command."""

import os
from pathlib import Path

from prony import __version__
from prony.base.errors import PronyError
from prony.base.units import counted
from prony.cli.arguments import DEFAULT_STORE, command, program
from prony.cli.console import say
from prony.cli.parts import ENGINE, MODEL, install


def welcome() -> int:
    """Say what this machine has and what to type next."""
    rows = _rows()
    found = rows if isinstance(rows, str) else f"{counted(rows, 'result')} in {DEFAULT_STORE}"
    say(f"prony {__version__}: continuous benchmarking for LLM inference serving\n")
    say(f"  cores here           {os.cpu_count()}")
    say(f"  accelerators here    {_accelerators()}")
    say(f"  llama.cpp server     {'found' if ENGINE.present else 'not installed'}")
    say(f"  SmolLM2-135M model   {'found' if MODEL.present else 'not installed'}")
    say(f"  results here         {found}")
    say(f"\nnext: {command('serve') if isinstance(rows, int) else install() or command('demo')}")
    say(f"all commands: {program()} --help")
    return 0


def _accelerators() -> str:
    devices = sorted(Path("/dev").glob("nvidia[0-9]*")) or sorted(Path("/dev/dri").glob("renderD*"))
    return ", ".join(str(device) for device in devices) or "none found (the CPU counts as one device)"


def _rows() -> int | str:
    """Return how many results are here, or why there are none."""
    if not DEFAULT_STORE.exists():
        return f"none yet ({DEFAULT_STORE} does not exist)"
    from prony.store.store import open_store

    try:
        with open_store(DEFAULT_STORE, create=False) as store:
            return len(store.rows()) or f"none yet ({DEFAULT_STORE} is empty)"
    except PronyError as error:
        return f"{DEFAULT_STORE} cannot be read: {error.message}"
