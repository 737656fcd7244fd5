"""The client's periodic timer: how late the loop is, where the wall clock is, how far the load has come."""

from array import array
from collections.abc import Callable
from time import monotonic_ns

from prony.load.client import Client
from prony.load.progress import Progress
from prony.load.reactor import Timer

TICK_NS = 10_000_000
_ADAPT_NS = 200_000_000
_REPORT_NS = 500_000_000

Report = Callable[[Progress], None]


class Ticker:
    """Runs while a phase runs; lags_ns holds how late each tick was. `report` must not block."""

    def __init__(self, client: Client, report: Report) -> None:
        self.lags_ns = array("q")
        self._client = client
        self._report = report
        self._timer: Timer | None = None
        self._due = self._report_due = self._adapt_due = self._reads = 0
        self._template = Progress(phase="starting")

    def start(self, progress: Progress) -> None:
        """Begin to tick for a phase; `progress` is what its reports start from."""
        self._template = progress
        self.lags_ns = array("q")
        self._report_due = self._reads = 0
        now = monotonic_ns()
        self._adapt_due = now + _ADAPT_NS
        self._schedule(now)

    def stop(self) -> None:
        """Tick no more, and look at every socket at once again."""
        if self._timer is not None:
            self._timer.cancel()
        self._client.wire.reactor.sweep_ns = 0

    def progress(self) -> Progress:
        """Return how far the running phase has come."""
        client, tally = self._client, self._client.tally
        counts = {
            "requests_done": tally.done,
            "requests_failed": tally.failed,
            "in_flight": client.in_flight,
            "output_tokens": tally.output_tokens,
            "elapsed_s": max(0.0, (monotonic_ns() - client.origin_ns) / 1e9),
            "ttft_p50_s": tally.ttft_s(0.5),
            "ttft_p99_s": tally.ttft_s(0.99),
        }
        return self._template.model_copy(update=counts)

    def _schedule(self, now: int) -> None:
        self._due = now + TICK_NS
        self._timer = self._client.wire.reactor.call_at(self._due, self._tick)

    def _tick(self) -> None:
        now = monotonic_ns()
        self.lags_ns.append(max(0, now - self._due))
        self._client.wire.clock.resample()
        self._client.wire.expire()
        if now >= self._adapt_due:
            self._adapt(now)
        if now >= self._report_due:
            self._report_due = now + _REPORT_NS
            self._report(self.progress())
        self._schedule(now)

    def _adapt(self, now: int) -> None:
        clock = self._client.wire.clock
        reads = clock.kernel_reads + clock.user_reads
        self._client.adapt(reads - self._reads, (now - self._adapt_due + _ADAPT_NS) / 1e9)
        self._reads, self._adapt_due = reads, now + _ADAPT_NS
        self._client.decode_soon()
