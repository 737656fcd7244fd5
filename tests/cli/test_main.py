"""The command line as a whole."""

import argparse
import subprocess
import sys
from collections.abc import Iterator

import pytest

from prony.cli.main import NOUNS, build_parser


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for child in action.choices.values():
            yield from leaves(child)


@pytest.mark.parametrize("parser", tuple(leaves(build_parser())), ids=lambda parser: parser.prog)
def test_every_command_shows_an_example_of_itself(parser: argparse.ArgumentParser) -> None:
    text = parser.format_help()
    assert "example" in text
    assert text.split("example", 1)[1].count(parser.prog) >= 1


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from prony.cli.main import build_parser; build_parser();"
        "print(sorted({'numpy', 'pydantic', 'sqlalchemy', 'starlette', 'rich', 'yaml', 'uvloop'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_bare_prony_says_what_is_here_and_what_to_type(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prony"], capture_output=True, text=True, check=False, cwd=str(tmp_path)
    )
    assert done.returncode == 0
    assert "next: " in done.stdout and "cores here" in done.stdout


def test_an_unknown_command_names_the_known_ones() -> None:
    done = subprocess.run([sys.executable, "-m", "prony", "rum"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert all(noun in done.stderr for noun in NOUNS)
