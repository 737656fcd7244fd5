"""What becomes of output that cannot be written, and of an interrupt at the wrong moment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prony.store.store import open_store
from tests.store.rows import make_row

C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        store.add([make_row("ab" * 32, model="Größe/模型"), make_row("cd" * 32, concurrency=4)], "here")
    return path


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = line.replace("prony", f"{sys.executable} -m prony")
    return subprocess.run(
        ["bash", "-c", command], env=os.environ | environment, capture_output=True, check=False, timeout=60
    )


@pytest.mark.parametrize("verb", ["list", "export", "show ab"])
def test_a_full_disk_is_told_once_and_exits_3(place: Path, verb: str) -> None:
    done = shell(f"prony results {verb} --store '{place}' > /dev/full")
    assert done.returncode == 3
    assert done.stderr.count(b"No space left on device") == 1 and b"Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["list", "export --json", "list --json"])
def test_a_reader_that_goes_away_ends_a_printer_quietly(place: Path, verb: str) -> None:
    done = shell(f"prony results {verb} --store '{place}' | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_streams_lead_nowhere_and_no_file_takes_their_place(place: Path) -> None:
    assert shell(f"prony results list --store '{place}' >&-").returncode == 0
    assert shell(f"prony results list --store '{place}' <&- >&- 2>&-").returncode == 0
    assert shell("prony results list --store /nowhere/s.db >&- 2>&-").returncode == 2
    with open_store(place, create=False) as store:
        assert len(store.rows()) == 2


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, C_LOCALE], ids=["ascii", "c"])
def test_a_terminal_without_unicode_gets_plain_spellings(place: Path, environment: dict[str, str]) -> None:
    listed = shell(f"prony results list --store '{place}'", **environment)
    assert (listed.returncode, listed.stderr) == (0, b"")
    shown = shell(f"prony results show ab --store '{place}'", **environment)
    assert shown.returncode == 0 and b"\\u6a21" in shown.stdout
    exported = shell(f"prony results export --json --store '{place}'", **environment)
    assert "Größe/模型" in exported.stdout.decode()


def test_help_on_a_full_disk_exits_3() -> None:
    assert shell("prony --help > /dev/full").returncode == 3


def test_an_interrupt_while_modules_are_made_ends_with_130() -> None:
    """CPython would end by the signal itself after an interrupt inside exec, as dataclasses use it."""
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'prony.cli.inputs': exec('raise KeyboardInterrupt')\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from prony.cli.main import main\n"
        "sys.exit(main(['matrix', 'list', 'none.yaml']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (130, "prony: interrupted\n")
