"""One worker's share of a load, phase by phase: connect, warm up, measure, lay out."""

from collections.abc import Sequence

import numpy as np

from prony.base.errors import LaunchError
from prony.load.address import Address
from prony.load.client import FIRST_WAVE_GAP_NS, Client
from prony.load.exchange import Exchange
from prony.load.interrupts import Interrupts
from prony.load.part import Part, build_part, worker_facts
from prony.load.progress import Progress
from prony.load.reactor import sharpen_timers
from prony.load.request import Target
from prony.load.ticker import Report, Ticker
from prony.load.tls import client_context
from prony.load.wire import Wire, require_sockets
from prony.load.workload import Workload
from prony.measure.eventlog import Fault
from prony.spec.arrival import ClosedLoop
from prony.spec.load import LoadPlan


class Shard:
    """Share `worker` of `workers`: its slots, its requests. Each phase returns when it is over or was stopped."""

    def __init__(
        self,
        target: Target,
        plan: LoadPlan,
        address: Address,
        workload: Workload,
        report: Report,
        worker: int = 0,
        workers: int = 1,
        interrupts: Interrupts | None = None,
    ) -> None:
        context = client_context(target) if address.tls else None
        self.wire = Wire(address, plan.request_timeout_s, context)
        self._workload, self._worker, self._workers = workload, worker, workers
        lanes = share_of(plan.concurrency, worker, workers)
        gap_ns, limit = FIRST_WAVE_GAP_NS * workers, None
        if isinstance(plan.arrival, ClosedLoop):
            gap_ns = max(gap_ns, int(plan.arrival.ramp_s * 1e9 / lanes)) if lanes else gap_ns
            if plan.arrival.prefill_concurrency is not None:
                limit = max(1, share_of(plan.arrival.prefill_concurrency, worker, workers))
        self.client = Client(self.wire, lanes, start_gap_ns=gap_ns, prefill_limit=limit)
        self.ticker = Ticker(self.client, report)
        self.measured: list[Exchange] = workload.share(worker, workers)
        self._interrupts = interrupts
        if interrupts is not None:
            self.wire.reactor.watch(interrupts.fd, self._interrupted)

    def open(self) -> None:
        """Connect every slot. Raises LaunchError."""
        require_sockets(len(self.client.lanes), self.wire.address)
        sharpen_timers()
        self.client.open()

    def warm(self) -> None:
        """Send the warm-ups. Raises LaunchError when the server refuses all of them or is gone."""
        warmups = [w for number, w in enumerate(self._workload.warmups) if number % self._workers == self._worker]
        self.ticker.start(Progress(phase="warming", requests_total=len(self.measured)))
        self.client.run(self._workload.warmup_source(self._worker, self._workers), len(warmups))
        self.ticker.stop()
        _require_welcome(self.client, warmups)

    def measure(self, origin_ns: int | None = None) -> None:
        """Send the measured requests, the first at origin_ns; connections are closed after the last."""
        self.ticker.start(Progress(phase="measuring", requests_total=len(self.measured)))
        self.client.run(self._workload.source(self._worker, self._workers), len(self.measured), origin_ns)
        self.ticker.stop()
        self.client.close()

    def part(self) -> Part:
        """Return what was measured, in columns."""
        client, clock = self.client, self.wire.clock
        facts = worker_facts(
            self.measured,
            (clock.kernel_reads, clock.user_reads, clock.steps),
            (client.cpu_s, client.wall_s),
            (self.wire.opened, self.wire.connect_ns, self.wire.tls_ns),
            np.asarray(self.ticker.lags_ns, dtype=np.int64),
        )
        return build_part(self.measured, client.origin_ns, facts)

    def close(self) -> None:
        """Close what is open."""
        self.client.close()
        self.wire.reactor.close()

    def _interrupted(self) -> None:
        assert self._interrupts is not None
        self._interrupts.clear()
        if self._interrupts.asked:
            self.client.stop()


def share_of(count: int, worker: int, workers: int) -> int:
    """Return how many of `count` things fall to a worker when they are dealt out one by one."""
    return count // workers + (worker < count % workers)


def _require_welcome(client: Client, warmups: Sequence[Exchange]) -> None:
    """Raise LaunchError when the server refuses what is asked (every warm-up got a 4xx) or is gone."""
    if not warmups or client.stopped:
        return
    address = client.wire.address.text
    if all(400 <= warmup.answer.response.status < 500 for warmup in warmups):
        raise LaunchError(
            f"{address}: the server refuses the request: {warmups[0].message}",
            fix="check model name, endpoint, lengths and API key against what the server accepts",
        )
    if all(warmup.fault in (Fault.CONNECT, Fault.CANCELLED) for warmup in warmups):
        raise LaunchError(
            f"the server went away during warm-up: {warmups[0].message}", fix="see the server's log for why it ended"
        )
