"""One load from plan to event log: prompts, connections, warm-up, measured phase."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from prony.load.address import Address, resolve_address
from prony.load.interrupts import Interrupts
from prony.load.part import Part, Setting, merge
from prony.load.progress import Progress
from prony.load.reporter import Reporter
from prony.load.request import Target, Watch
from prony.load.shard import Shard
from prony.load.watch import Watcher
from prony.load.workload import Workload, prepare
from prony.measure.eventlog import EventLog
from prony.spec.arrival import ClosedLoop
from prony.spec.load import LoadPlan

Show = Callable[[Progress], None]


@dataclass(frozen=True)
class Recording:
    """A load that was run.

    log: None when it was stopped before the measured phase. origin_ns: CLOCK_MONOTONIC of the log's zero.
    """

    log: EventLog | None
    origin_ns: int
    stopped: bool


@dataclass(frozen=True)
class Load:
    """A load that is ready to run."""

    target: Target
    plan: LoadPlan
    address: Address
    workload: Workload

    def setting(self, origin_ns: int, started_unix_s: float) -> Setting:
        """Return what all workers share."""
        return Setting(
            concurrency=self.plan.concurrency,
            arrival_open=not isinstance(self.plan.arrival, ClosedLoop),
            streamed=self.plan.stream,
            prompt_lengths=self.workload.lengths,
            started_unix_s=started_unix_s,
            start_s=max(0.0, origin_ns / 1e9 - _process_start_s()),
            dns_s=self.address.dns_s,
            tls=self.address.tls,
        )


def run_load(
    target: Target,
    plan: LoadPlan,
    show: Show,
    watch: Watch | None = None,
    workers: int = 1,
    interrupts: Interrupts | None = None,
) -> Recording:
    """Run a plan against a target. Raises LaunchError when nothing can be measured.

    watch: what to look at beside the load, if anything. interrupts: an interrupt ends the load early, and what was
    measured until then is kept; to be entered by the caller, who so protects also what follows.
    """
    show(Progress(phase="starting", requests_total=plan.requests))
    address = resolve_address(target.url)
    load = Load(target, plan, address, prepare(target, plan))
    workers = min(workers, plan.concurrency)
    if workers > 1:
        from prony.load.fleet import run_fleet

        return run_fleet(load, show, Watcher(watch), workers, interrupts)
    return _run_alone(load, show, Watcher(watch), interrupts)


def _run_alone(load: Load, show: Show, watcher: Watcher, interrupts: Interrupts | None) -> Recording:
    with Reporter(show) as reporter:
        shard = Shard(load.target, load.plan, load.address, load.workload, reporter.put, interrupts=interrupts)
        client = shard.client
        try:
            shard.open()
            shard.warm()
            if client.stopped:
                return Recording(None, 0, True)
            watcher.begin()
            started_unix_s = time.time()
            shard.measure()
            watcher.end()
        finally:
            shard.close()
        reporter.put(shard.ticker.progress().model_copy(update={"phase": "finishing"}))
        log = assemble([shard.part()], load.setting(client.origin_ns, started_unix_s), watcher)
    return Recording(log, client.origin_ns, client.stopped)


def assemble(parts: list[Part], setting: Setting, watcher: Watcher) -> EventLog:
    """Return the log of all workers with what was seen beside them."""
    return replace(merge(parts, setting), disturbance=watcher.disturbance, engine=watcher.engine)


def _process_start_s() -> float:
    """Return when this process was started, in s of CLOCK_MONOTONIC (Linux counts both from boot, suspends apart)."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return time.monotonic()
    boot_s = ticks / os.sysconf("SC_CLK_TCK")
    return boot_s - (time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic())
