"""How lint and check print findings: text for people, JSON for programs."""

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prony.base.text import one_line
from prony.cli.console import print_data, say

if TYPE_CHECKING:
    from prony.base.finding import Finding


def print_findings(findings: "Sequence[Finding]") -> None:
    """Print findings, each with its place, what is allowed and what to do."""
    # One line per finding and topic where a program reads, so that grep finds all of it.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for finding in findings:
        say(finding_text(finding, width))


def finding_text(finding: "Finding", width: int | None = None) -> str:
    """Return `file:line: severity [rule] message` and the lines below it, wrapped to a width in columns."""
    place = f"{finding.where}: " if finding.where else ""
    told = f" ({finding.evidence})" if finding.evidence else ""
    lines = [f"{place}{finding.severity} [{finding.rule}] {finding.message}{told}"]
    lines += [f"  allowed here: {finding.allowed}"] if finding.allowed else []
    lines += [f"  what to do: {finding.fix}"] if finding.fix else []
    lines = [one_line(line) for line in lines]
    return "\n".join(line if width is None else _wrapped(line, width) for line in lines)


def _wrapped(line: str, width: int) -> str:
    """Break a line between words only: a path or a command is never cut."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(
        line, max(width, 20), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )  # fmt: skip


def summary(findings: "Sequence[Finding]") -> str:
    """Return counts per severity: 2 errors, 1 warning."""
    from prony.base.units import counted

    names = {"error": "error", "invalid": "error", "warn": "warning", "info": "note"}
    counts = Counter(names[finding.severity] for finding in findings)
    return (
        ", ".join(counted(counts[name], name) for name in ("error", "warning", "note") if counts[name]) or "no findings"
    )


def print_rule_counts(findings: "Sequence[Finding]") -> None:
    """Print how often each rule was broken."""
    for (rule, severity), count in sorted(Counter((item.rule, item.severity) for item in findings).items()):
        say(f"  {count:5d}  {severity:5s} {rule}", sys.stderr)


def plain(finding: "Finding", **more: Any) -> dict[str, Any]:
    """Return a finding as JSON values."""
    return {**finding.model_dump(mode="json"), **more}


def print_json(value: Any) -> None:
    """Print one JSON value, indented."""
    import orjson

    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # a name from the file system that is not UTF-8, which only an escape can show
        import json

        text = json.dumps(value, indent=2, ensure_ascii=True)
    print_data(text + "\n")
