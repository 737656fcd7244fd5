"""The same log as another tool would report it: one pure module per tool."""

from collections.abc import Callable
from typing import Literal

from prony.base.errors import ConfigError
from prony.measure.eventlog import EventLog
from prony.measure.reportas import aiperf, guidellm, inferencex, own, sglang, vllm
from prony.measure.reportas.report import Line, Report
from prony.spec.load import LoadPlan

Tool = Literal["prony", "vllm", "sglang", "aiperf", "guidellm", "inferencex"]

_LINES: dict[str, Callable[[EventLog, LoadPlan], tuple[Line, ...]]] = {
    "prony": lambda log, _: own.lines(log),
    "vllm": lambda log, _: vllm.lines(log),
    "sglang": lambda log, _: sglang.lines(log),
    "aiperf": lambda log, _: aiperf.lines(log),
    "guidellm": lambda log, _: guidellm.lines(log),
    "inferencex": inferencex.lines,
}
TOOLS = tuple(_LINES)


def report(log: EventLog, load: LoadPlan, tool: str) -> Report:
    """Return what a tool would report of a load. Raises ConfigError for an unknown tool.

    What its definition cannot give of this log (a first token of whole answers, tokens that the server did not count)
    has no line.
    """
    lines = _LINES.get(tool)
    if lines is None:
        raise ConfigError(f"'{tool}' is not a tool whose reports are known", allowed=", ".join(TOOLS))
    return Report(tool=tool, lines=lines(log, load))


__all__ = ["TOOLS", "Line", "Report", "Tool", "report"]
