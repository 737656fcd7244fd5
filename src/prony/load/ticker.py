"""The client's periodic timer: how late the loop is, where the wall clock is, how far the load has come."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic_ns

from prony.load.client import Client
from prony.load.progress import Progress

TICK_NS = 10_000_000
_REPORT_NS = 500_000_000

Report = Callable[[Progress], None]


class Ticker:
    """Runs while a phase runs; lags_ns holds how late each tick was.

    Reports are handed to a thread, one at a time, so that a slow disk never holds the loop.
    """

    def __init__(self, client: Client, report: Report) -> None:
        self.lags_ns: list[int] = []
        self._client = client
        self._report = report
        self._thread = ThreadPoolExecutor(1, "progress")
        self._reporting: Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._due = self._report_due = 0
        self._template = Progress(phase="starting")

    def start(self, progress: Progress) -> None:
        """Begin to tick for a phase; `progress` is what its reports start from."""
        self._template = progress
        self.lags_ns = []
        self._report_due = 0
        self._schedule(monotonic_ns())

    def stop(self) -> None:
        """Tick no more."""
        if self._handle is not None:
            self._handle.cancel()

    def close(self) -> None:
        """Stop and wait for the last report."""
        self.stop()
        self._thread.shutdown()

    def _schedule(self, now: int) -> None:
        self._due = now + TICK_NS
        self._handle = self._loop.call_later(TICK_NS / 1e9, self._tick)

    def _tick(self) -> None:
        now = monotonic_ns()
        self.lags_ns.append(max(0, now - self._due))
        self._client.clock.resample()
        if now >= self._report_due and (self._reporting is None or self._reporting.done()):
            self._report_due = now + _REPORT_NS
            self._reporting = self._thread.submit(self._report, self._progress(now))
        self._schedule(now)

    def _progress(self, now: int) -> Progress:
        client = self._client
        counts = {
            "requests_done": client.done,
            "requests_failed": client.failed,
            "output_tokens": client.output_tokens,
            "elapsed_s": (now - client.origin_ns) / 1e9,
        }
        return self._template.model_copy(update=counts)
