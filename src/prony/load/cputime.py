"""Where this machine's CPU time goes: the job's own processes, everybody else, other machines of the hypervisor."""

import os
from dataclasses import dataclass
from pathlib import Path

from prony.base.proctree import descendants
from prony.measure.observed import Disturbance

FEWEST_TICKS = 100
"""CPU time is booked in ticks of 10 ms: less than this of all cores together tells nothing."""


@dataclass(frozen=True)
class CpuTimes:
    """CPU time in ticks since boot: of all cores, of all programs, stolen, of the job; and the load average."""

    total: int
    busy: int
    steal: int
    own: int
    cores: int
    load1: float


def read_cpu(root_pid: int) -> CpuTimes | None:
    """Read the times; the job is root_pid and all that descends from it. None where /proc does not tell."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
        fields = [int(field) for field in lines[0].split()[1:9]]
        own = sum(map(_ticks, (root_pid, *descendants(root_pid))))
        load1 = os.getloadavg()[0]
    except (OSError, ValueError, IndexError):
        return None
    if len(fields) < 8:
        return None
    user, nice, system, _, _, _, _, steal = fields  # interrupts are nobody's: they serve the job too
    cores = sum(line[:3] == "cpu" and line[3:4].isdigit() for line in lines)
    return CpuTimes(sum(fields), user + nice + system, steal, own, max(1, cores), load1)


def disturbance(before: CpuTimes | None, after: CpuTimes | None) -> Disturbance | None:
    """Return who else used the machine between two readings; None when too little time went by or it isn't known."""
    if before is None or after is None or after.total - before.total < FEWEST_TICKS:
        return None
    total = after.total - before.total
    foreign = (after.busy - before.busy) - (after.own - before.own)
    return Disturbance(
        foreign_cpu_share=_share(foreign, total),
        steal_share=_share(after.steal - before.steal, total),
        load1=before.load1,
        cores=after.cores,
    )


def _ticks(pid: int) -> int:
    """Return a process's time with that of its children that have ended; 0 when it is gone (its parent has it then)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))


def _share(part: int, total: int) -> float:
    return min(1.0, max(0.0, part / total))
