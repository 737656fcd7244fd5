"""Foreign text made safe: for a terminal, and for a spreadsheet."""

import re

# C0 without newline and tab, DEL, C1; Unicode's bidirectional overrides, which reorder what a reader sees.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def printable(text: str) -> str:
    """Return text that cannot steer a terminal: each control character but newline and tab becomes U+FFFD."""
    return _CONTROL.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Return text that stays on its line: line ends and TABs as escapes, beside what `printable` does."""
    return printable(text.replace("\n", "\\n").replace("\t", "\\t"))


def cell(text: str) -> str:
    """Return text as a CSV cell: printable, an apostrophe in front where a spreadsheet would run it as a formula."""
    return f"'{printable(text)}" if text.startswith(_FORMULA) else printable(text)
