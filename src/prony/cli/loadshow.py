"""How a load looks on a terminal: one line while it runs, a table when it is over."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from prony.base.units import about, counted, duration, significant
from prony.cli.console import say, shown
from prony.load.progress import Progress
from prony.measure.eventlog import EventLog
from prony.measure.statistics import QUANTILES
from prony.measure.summary import LoadSummary, Spread
from prony.spec.load import LoadPlan

_PLAIN_EVERY_S = 5.0
_LATENCIES = (("TTFT", "ttft_s"), ("TPOT", "tpot_s"), ("ITL", "itl_s"), ("E2EL", "e2el_s"))
_NEEDS = {quantile.stat: quantile.needs for quantile in QUANTILES}
_COLUMNS = ("mean", "p50", "p90", "p95", "p99", "p999")


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Give a function that shows progress on standard error: in place on a terminal, else a line now and then."""
    if quiet:
        yield lambda _: None
        return
    in_place = sys.stderr.isatty()
    last_s = -_PLAIN_EVERY_S

    def show(now: Progress) -> None:
        nonlocal last_s
        if in_place:
            sys.stderr.write("\r\x1b[2K" + shown(_line(now), sys.stderr))
            sys.stderr.flush()
        elif now.phase == "measuring" and monotonic() - last_s >= _PLAIN_EVERY_S:
            last_s = monotonic()
            say(_line(now), sys.stderr)

    try:
        yield show
    finally:
        if in_place:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def _line(now: Progress) -> str:
    if now.phase in ("starting", "warming"):
        return f"{now.phase} …"
    parts = [f"{now.requests_done}/{now.requests_total} requests"]
    if now.requests_failed:
        parts.append(f"{now.requests_failed} failed")
    parts.append(f"{now.in_flight} in flight")
    if now.tokens_per_s is not None:
        parts.append(f"{significant(now.tokens_per_s)} tok/s")
    if now.ttft_p50_s is not None:
        parts.append(f"TTFT p50 {duration(now.ttft_p50_s)}, p99 {duration(now.ttft_p99_s)}")
    if now.left_s is not None:
        parts.append(f"about {about(now.left_s)} left")
    return " · ".join(parts)


def print_summary(summary: LoadSummary) -> None:
    """Print what was measured, and what is to be said about it."""
    asked = summary.requests
    say(f"{asked.completed} of {counted(asked.total, 'request')} completed{_faults(summary)}")
    say(f"{'':<16}" + "".join(f"{name.replace('p999', 'p99.9'):>12}" for name in _COLUMNS))
    for label, field in _LATENCIES:
        _print_spread(label, getattr(summary, field), duration)
    _print_spread("tok/s/user", summary.interactivity, significant)
    if any(_mark(spread, "p999") for spread in (summary.ttft_s, summary.e2el_s) if spread):
        say("* too few requests support this percentile (n < 10 / (1 − q))")
    say(_throughput(summary))
    say(_client(summary))
    for verdict in summary.verdicts:
        say(str(verdict))


def _print_spread(label: str, spread: Spread | None, write: Callable[[float | None], str]) -> None:
    if spread is None:
        return
    cells = "".join(f"{write(getattr(spread, name)) + _mark(spread, name):>12}" for name in _COLUMNS)
    interval = ""
    if spread.ci95 is not None and spread.mean is not None:
        interval = f"   mean 95 %: {write(spread.ci95[0])} to {write(spread.ci95[1])}"
    say(f"{label:<16}{cells}{interval}")


def _mark(spread: Spread, name: str) -> str:
    """Return an asterisk for a percentile that too few values support, else nothing."""
    return "*" if spread.n < _NEEDS.get(name, 0) else ""


def _faults(summary: LoadSummary) -> str:
    named = [f"{count} × {name}" for name, count in summary.requests.by_error.items()]
    return f", {summary.requests.failed} failed: {', '.join(named)}" if named else ""


def _throughput(summary: LoadSummary) -> str:
    found = summary.throughput
    rates = f"output {significant(found.output)}, input {significant(found.input)}, total {significant(found.total)}"
    concurrency = summary.concurrency
    return (
        f"{'throughput':<16}{rates} tok/s; {significant(found.request)} req/s; in flight"
        f" {significant(concurrency.achieved_mean)} of {concurrency.asked} asked"
    )


def _client(summary: LoadSummary) -> str:
    client = summary.client
    stamps = "by the kernel" if client.clock == "kernel" else "by the client"
    bound = "; the CLIENT was the bottleneck" if client.bound else ""
    return (
        f"{'client':<16}stamps {stamps}; loop lag p99 {duration(client.loop_lag_p99_s)}, send lag p99"
        f" {duration(client.send_lag_p99_s)}; {significant(client.cpu_s)} s CPU{bound}"
    )


def print_report(log: EventLog, plan: LoadPlan, tool: str) -> None:
    """Print the values that another tool would report of the same log, under its names and definitions."""
    from prony.measure.reportas import report

    found = report(log, plan, tool)
    say(f"as {found.tool} reports it:")
    for line in found.lines:
        say(f"  {line.name:<36}{significant(line.value):>14} {line.unit:<10} {line.definition}")
