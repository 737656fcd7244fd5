"""Rules about the machine: its clock, and who else used it."""

from collections.abc import Iterator

from prony.base.finding import Finding
from prony.base.units import significant
from prony.measure.rules.case import Case, Rule, verdict

# Of the time of all cores. Booking by ticks errs by about 1 % over 5 s on two busy cores.
FOREIGN_CPU_SHARE = 0.1


def stamp_clock(case: Case) -> Iterator[Finding]:
    """Say so when the kernel did not stamp the arrivals."""
    if case.log.client.clock == "user":
        yield verdict(
            "stamp-clock",
            "info",
            "arrivals were stamped by the client process, not by the kernel",
            "run on Linux with SO_TIMESTAMPNS for stamps that do not depend on the client's load",
        )


def clock_steps(case: Case) -> Iterator[Finding]:
    """Kernel stamps are on the wall clock: when it is set, instants around the step rest on a correction."""
    steps = case.log.client.clock_steps
    if steps:
        yield verdict(
            "clock-steps",
            "warn",
            f"the machine's wall clock was set {steps} time{'s' if steps > 1 else ''} while measuring",
            "let the clock be slewed instead of set (chronyd, ntpd -x), then measure again",
        )


def machine_busy(case: Case) -> Iterator[Finding]:
    """Programs beside the job, or other machines of the hypervisor, took CPU time from the server or the client."""
    seen = case.log.disturbance
    if seen is None:
        return
    cores = f"{seen.cores} core{'' if seen.cores == 1 else 's'}"
    for share, words, fix in (
        (seen.foreign_cpu_share, "other programs used", "close them (top shows them) and run again"),
        (seen.steal_share, "other virtual machines took", "measure on a host that is not shared, then run again"),
    ):
        if share > FOREIGN_CPU_SHARE:
            yield verdict(
                "machine-busy",
                "warn",
                f"{words} {share:.0%} of this machine's CPU while measuring"
                f" ({significant(share * seen.cores)} of {cores})",
                fix,
                f"load average when the measured phase began: {seen.load1:.2f}",
            )


MACHINE_RULES: tuple[Rule, ...] = (stamp_clock, clock_steps, machine_busy)
