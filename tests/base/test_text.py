"""Foreign text must steer neither a terminal nor a spreadsheet."""

import pytest

from prony.base.text import cell, printable


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r", "\x00", "\x7f", "\u202e"])
def test_control_characters_of_foreign_text_never_reach_a_terminal(evil: str) -> None:
    shown = printable(f"a{evil}b")
    assert evil[0] not in shown
    assert shown.startswith("a\ufffd") and shown.endswith("b")


def test_words_of_any_script_and_lines_are_printed_as_they_are() -> None:
    assert printable("Ünïcode 模型\n\tnext — 27.0\u2009ms") == "Ünïcode 模型\n\tnext — 27.0\u2009ms"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_text_cell_begins_as_a_formula(start: str) -> None:
    made = cell(f"{start}cmd|'/c calc'!A1")
    assert made.startswith("'") and made.endswith("cmd|'/c calc'!A1") and "\r" not in made
    assert cell("a=b") == "a=b"
