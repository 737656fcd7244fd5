"""Commands that are printed to be typed, and numbers that are typed."""

import shlex
from pathlib import Path

import pytest

from prony.cli.arguments import again, command
from prony.cli.main import build_parser, main


def test_the_command_to_go_on_names_every_option_and_parses_to_the_same() -> None:
    given = [
        "run", "dir ä b/master.yaml", "two.yaml", "--keys", "*-draft", "it's", "--runner-config", "my runners.yaml",
        "--load", "l;oad.yaml", "--recipes", "$HOME", "--out", "o u t", "--resume", "--store", "dir ä b/s.db",
    ]  # fmt: skip
    arguments = build_parser().parse_args(given)
    line = again(arguments, Path("o u t"))
    assert build_parser().parse_args(shlex.split(line)[1:]) == arguments


def test_the_default_store_is_not_named() -> None:
    assert command("serve") == "prony serve"
    assert command("serve", store="dir ä b/s.db") == "prony serve --store 'dir ä b/s.db'"


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--port", "99999"],
        ["serve", "--port=-1"],
        ["serve", "--port", "²"],
        ["results", "list", "--conc", "0"],
        ["results", "list", "--conc", "9" * 30],
        ["job", "run", "x", "--attempt", "0"],
    ],
)
def test_a_number_out_of_range_is_an_argument_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "is not a whole number from" in capsys.readouterr().err
