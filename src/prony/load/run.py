"""One load from plan to event log: prompts, connections, warm-up, measured phase, decoding."""

import asyncio
import resource
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from prony.base.errors import LaunchError
from prony.load.address import resolve_address
from prony.load.client import Client
from prony.load.decode import Stream, build_log, decode
from prony.load.exchange import Exchange
from prony.load.progress import Progress
from prony.load.prompts import Lengths, Workload, build_workload
from prony.load.request import Target, Watch
from prony.load.ticker import Report, Ticker
from prony.load.watch import Watcher
from prony.measure.eventlog import NEVER, ClientFacts, EventLog, Fault
from prony.spec.load import LoadPlan


@dataclass(frozen=True)
class Recording:
    """A load that was run.

    log: None when it was stopped before the measured phase. origin_ns: CLOCK_MONOTONIC of the log's zero.
    """

    log: EventLog | None
    origin_ns: int
    stopped: bool


async def run_load(target: Target, plan: LoadPlan, report: Report, watch: Watch | None = None) -> Recording:
    """Run a plan against a target; SIGINT and SIGTERM end it early. Raises LaunchError when nothing can be measured.

    watch: what to look at beside the load, if anything.
    """
    report(Progress(phase="starting", requests_total=plan.requests))
    address = resolve_address(target.url)
    workload = build_workload(target, plan)
    client = Client(address, plan.concurrency, plan.request_timeout_s)
    ticker = Ticker(client, report)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, client.stop)
    try:
        await client.open()
        return await _phases(client, ticker, workload, report, Watcher(watch))
    finally:
        client.close()
        ticker.close()


async def _phases(client: Client, ticker: Ticker, workload: Workload, report: Report, watcher: Watcher) -> Recording:
    total = len(workload.measured)
    ticker.start(Progress(phase="warming", requests_total=total))
    await client.run(workload.warmups)
    ticker.stop()
    _require_welcome(client, workload.warmups)
    if client.stopped:
        return Recording(None, client.origin_ns, True)
    watcher.begin()
    ticker.start(Progress(phase="measuring", requests_total=total))
    started_unix_s = time.time()
    await client.run(workload.measured)
    watcher.end()
    ticker.close()
    client.close()
    end = Progress(
        phase="finishing",
        requests_total=total,
        requests_done=client.done,
        requests_failed=client.failed,
        output_tokens=client.output_tokens,
        elapsed_s=(time.monotonic_ns() - client.origin_ns) / 1e9,
    )
    report(end)
    streams = [decode(exchange) for exchange in workload.measured]
    facts = _facts(client, ticker.lags_ns, workload.measured, streams, workload.lengths, started_unix_s)
    log = build_log(workload.measured, streams, client.origin_ns, len(client.lanes), facts)
    log = replace(log, disturbance=watcher.disturbance, engine=watcher.engine)
    return Recording(log, client.origin_ns, client.stopped)


def _require_welcome(client: Client, warmups: Sequence[Exchange]) -> None:
    """Raise LaunchError when the server refuses what is asked (every warm-up got a 4xx) or is gone."""
    if not warmups or client.stopped:
        return
    if all(400 <= exchange.response.status < 500 for exchange in warmups):
        refusal = decode(warmups[0]).message
        raise LaunchError(
            f"{client.connections.address.text}: the server refuses the request: {refusal}",
            fix="check model name, endpoint, lengths and API key against what the server accepts",
        )
    if all(exchange.fault in (Fault.CONNECT, Fault.CANCELLED) for exchange in warmups):
        raise LaunchError(
            f"the server went away during warm-up: {warmups[0].message}", fix="see the server's log for why it ended"
        )


def _facts(
    client: Client,
    lags_ns: Sequence[int],
    exchanges: Sequence[Exchange],
    streams: Sequence[Stream],
    lengths: Lengths,
    started_unix_s: float,
) -> ClientFacts:
    clock, connections = client.clock, client.connections
    waits_ns = [x.sent - x.scheduled for x in exchanges if x.sent != NEVER]
    reads = clock.kernel_reads + clock.user_reads
    details = []
    if clock.user_reads:
        details.append(f"{clock.user_reads} of {reads} reads had no kernel stamp")
    return ClientFacts(
        clock="kernel" if clock.kernel_reads * 100 >= reads * 99 and reads else "user",
        loop_lag_p99_s=_p99_s(lags_ns),
        send_lag_p99_s=_p99_s(waits_ns),
        merged_reads=sum(stream.merged for stream in streams),
        reads=reads,
        cpu_s=client.cpu_s,
        peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        connections=connections.opened,
        connect_mean_s=connections.connect_ns / 1e9 / max(1, connections.opened),
        started_unix_s=started_unix_s,
        prompt_lengths=lengths,
        clock_steps=clock.steps,
        detail="; ".join(details),
    )


def _p99_s(values_ns: Sequence[int]) -> float:
    return float(np.percentile(np.asarray(values_ns, dtype=np.float64), 99)) / 1e9 if values_ns else 0.0
