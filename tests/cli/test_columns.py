"""Tables on narrow terminals, and what is said of jobs."""

import pytest
from rich.console import Console

from prony.cli import columns
from prony.cli.columns import Column, print_table
from prony.cli.console import headline
from prony.cli.outcome import _one_advice

COLUMNS = (Column("key", least=12), Column("engine", drop=1), Column("value", right=True, drop=2), Column("last"))
LINES = [("smollm2-135m-q4-cpu-llamacpp", "sim", "1", "x"), ("smollm2-135m-q4-cpu-llamacpp-draft", "sim", "2", "y")]


def drawn(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setattr(columns, "make_console", lambda: Console(width=width, markup=False, highlight=False))
    print_table(COLUMNS, LINES)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines)
    return lines


def test_a_wide_terminal_shows_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = drawn(80, monkeypatch, capsys)
    assert len(lines) == 3 and "smollm2-135m-q4-cpu-llamacpp-draft  sim" in lines[2]


def test_a_narrow_one_cuts_names_in_the_middle_and_says_what_it_leaves_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = drawn(32, monkeypatch, capsys)
    assert lines[1].startswith("smollm2-1…-llamacpp") and lines[2].startswith("smollm2-1…cpp-draft")
    assert lines[-1] == "in every line: engine sim"
    lines = drawn(19, monkeypatch, capsys)
    assert "no room for: value" in lines[-1]


def test_names_that_would_look_the_same_are_folded_instead(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(columns, "make_console", lambda: Console(width=9, markup=False))
    print_table([Column("key", least=9)], [("begin-aaaaaaa-end",), ("begin-bbbbbbb-end",)])
    out = capsys.readouterr().out
    assert "begin-aaa\naaaa-end" in out and "begin-bbb\nbbbb-end" in out


def test_the_line_of_a_failed_job_is_a_whole_sentence() -> None:
    message = "agg: the server exited with code 1 before it was ready; its last lines:\n  | boom"
    assert headline(message) == "agg: the server exited with code 1 before it was ready"
    assert headline("") == ""


def test_advice_that_a_message_quotes_is_told_once_with_our_own() -> None:
    message = "agg: died; its last lines:\n  | prony: no such model\n  |   what to do: pip install x"
    assert _one_advice(message, "read agg.log") == (
        "agg: died; its last lines:\n  | prony: no such model",
        "pip install x; read agg.log",
    )
