"""Rules about the client: was the load the asked one, and were its stamps in time?"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from prony.base.finding import Finding
from prony.base.units import counted, duration, significant
from prony.measure.eventlog import Ints
from prony.measure.inflight import spans
from prony.measure.rules.case import Case, Rule, verdict
from prony.measure.rules.flow import littles_ratio
from prony.spec.arrival import ClosedLoop
from prony.spec.workload import MultiTurn

# Share of the mean end-to-end latency that a late send may take before it changes the offered load.
LAG_SHARE_OF_E2EL = 0.05
# With stamps taken in the loop, its lag is added to token times: bounded against the mean time per output token.
LAG_SHARE_OF_TPOT = 0.1
CONCURRENCY_SHARE = 0.9
MERGED_SHARE = 0.05
CPU_SHARE = 0.9
RATE_SHARE = 0.95
LATE_S = 0.001
"""A send that is no later than this is in time, however short the answers are."""

CAUSES = {
    "verdict/send-lag": "requests were sent late",
    "verdict/loop-lag": "its loop ran late",
    "verdict/stamp-lag": "its stamps were late",
    "verdict/merged-reads": "it read events late",
    "verdict/late-ends": "it booked ends late",
    "verdict/worker-cpu": "its CPU was used up",
    "verdict/concurrency": "fewer requests were in flight than asked",
    "verdict/rate": "requests were sent at a lower rate than asked",
    "verdict/slot-wait": "requests waited for a free slot",
    "verdict/input-length": "prompts were not as long as planned",
}
"""The verdicts that the client itself is to blame for, and what each says of it."""


def client_bound(verdicts: Sequence[Finding]) -> bool:
    """Return whether the client, not the server alone, set the numbers of a load."""
    return any(one.rule == "verdict/client-bound" for one in verdicts)


def bound_by(verdicts: Sequence[Finding]) -> Iterator[Finding]:
    """Mark the load as client-bound when any verdict about it is the client's fault."""
    blamed = [one for one in verdicts if one.rule in CAUSES]
    if blamed:
        yield verdict(
            "client-bound",
            "warn",
            f"the client, not the server alone, set these numbers: {'; '.join(CAUSES[one.rule] for one in blamed)}",
            "mend what these verdicts say, then measure again",
            "\n".join(one.message for one in blamed),
        )


def concurrency(case: Case) -> Iterator[Finding]:
    """While a closed loop was full it must have held the asked concurrency (less when there are fewer requests).

    Conversations end one by one and think, and a limit of prefills holds requests back: these loops need not be full.
    """
    arrival = case.load.arrival
    held_back = not isinstance(arrival, ClosedLoop) or arrival.prefill_concurrency is not None
    if case.open_loop or held_back or isinstance(case.load.workload, MultiTurn):
        return
    achieved = case.value("concurrency_achieved")
    asked = min(case.load.concurrency, len(case.log.requests))
    if achieved is not None and achieved < CONCURRENCY_SHARE * asked:
        yield verdict(
            "concurrency",
            "warn",
            f"{significant(achieved)} requests were in flight while the loop was full, {asked} were asked",
            "the client was late to send the next request: give it more CPU, or cores of its own",
        )


def client_lag(case: Case) -> Iterator[Finding]:
    """Late sends change the load; a late loop changes the stamps too when it takes them itself."""
    client, latency, per_token = case.log.client, case.value("e2el", "mean"), case.value("tpot", "mean")
    bound = max(LATE_S, LAG_SHARE_OF_E2EL * latency) if latency else None
    fix = "give the client cores of its own; the server's numbers may be better than shown"
    for rule, words, lag in (
        ("send-lag", "requests were sent late by", _send_lag_s(case)),
        ("loop-lag", "the client's loop ran late by", client.loop_lag_p99_s),
    ):
        if bound is not None and lag > bound:
            yield verdict(
                rule,
                "warn",
                f"{words} {duration(lag)} (p99), more than {LAG_SHARE_OF_E2EL:.0%} of the mean latency"
                f" {duration(latency)}",
                fix,
            )
    if client.clock == "user" and per_token and client.loop_lag_p99_s > LAG_SHARE_OF_TPOT * per_token:
        yield verdict(
            "stamp-lag",
            "warn",
            f"token times were read from a loop that ran late by {duration(client.loop_lag_p99_s)} (p99), more than"
            f" {LAG_SHARE_OF_TPOT:.0%} of the mean TPOT {duration(per_token)}",
            fix,
        )


def _send_lag_s(case: Case) -> float:
    """Return the 99th percentile of how late sends were; in an open loop of those that found a free slot."""
    due, sent = _due_and_sent(case)
    if not len(due):
        return 0.0 if case.open_loop else case.log.client.send_lag_p99_s
    free = ~_found_no_slot(case, due, sent)
    return float(np.percentile((sent - due)[free], 99)) / 1e9 if free.any() else 0.0


def merged_reads(case: Case) -> Iterator[Finding]:
    """Events that wait for one read share a stamp; when the loop is faster than they come, they were sent at once."""
    client = case.log.client
    share = client.merged_reads / client.reads if client.reads else 0.0
    gap_s = case.value("event_gap", "mean")
    if share > MERGED_SHARE and gap_s is not None and client.loop_lag_p99_s > gap_s:
        yield verdict(
            "merged-reads",
            "warn",
            f"{share:.1%} of reads held more than one event while the client was {duration(client.loop_lag_p99_s)} late"
            " (p99): events share time stamps that they may not share on the wire",
            "read the tail of inter-token latency with care, or give the client cores of its own",
        )


def late_ends(case: Case) -> Iterator[Finding]:
    """When Little's law is off by no more than the loop's lag, the ends were booked late, not the streams left open."""
    if littles_ratio(case) is None:
        return
    requests = case.log.requests
    tail_s = float((requests.end[requests.end >= 0].mean() - case.made.last.mean()) / 1e9)
    if 0 < tail_s <= case.log.client.loop_lag_p99_s:
        yield verdict(
            "late-ends",
            "warn",
            f"requests ended {duration(tail_s)} after their last token on average, which the client's loop was late by"
            f" ({duration(case.log.client.loop_lag_p99_s)}, p99)",
            "give the client cores of its own",
        )


def worker_cpu(case: Case) -> Iterator[Finding]:
    """A worker that has no CPU time left cannot send in time."""
    share = case.log.client.cpu_share
    if share is not None and share > CPU_SHARE:
        yield verdict(
            "worker-cpu",
            "warn",
            f"the busiest of {counted(case.log.client.workers, 'worker')} used {share:.0%} of its core",
            "give the client more workers (--workers), each with a core of its own",
        )


def sending_rate(case: Case) -> Iterator[Finding]:
    """In an open loop requests must be sent at the rate at which they are due."""
    due, sent = _due_and_sent(case)
    if len(due) < 2 or not np.ptp(due) or not np.ptp(sent):
        return
    asked, achieved = ((len(due) - 1) / (float(np.ptp(at)) / 1e9) for at in (due, sent))
    if achieved < RATE_SHARE * asked:
        yield verdict(
            "rate",
            "warn",
            f"requests were sent at {significant(achieved)} req/s, {significant(asked)} req/s were asked",
            "raise --concurrency so that no request waits for a slot, or give the client more workers",
        )


def slot_wait(case: Case) -> Iterator[Finding]:
    """In an open loop no request should wait for another to end: its schedule then is the server's."""
    due, sent = _due_and_sent(case)
    waited = _found_no_slot(case, due, sent)
    if waited.any():
        late = (sent - due)[waited] / 1e9
        yield verdict(
            "slot-wait",
            "warn",
            f"{int(waited.sum())} of {len(due)} requests were due when all {case.load.concurrency} slots were taken,"
            f" and waited {duration(float(late.mean()))} on average, {duration(float(late.max()))} at most",
            "raise --concurrency; or read the latencies from when requests were due (ttft_scheduled, e2el_scheduled),"
            " which count the wait",
        )


def _due_and_sent(case: Case) -> tuple[Ints, Ints]:
    """Return when the sent requests of an open loop were due, and sent; of a closed loop none."""
    requests = case.log.requests
    some = (requests.sent >= 0) & (requests.scheduled >= 0) & case.open_loop
    return requests.scheduled[some], requests.sent[some]


def _found_no_slot(case: Case, due: Ints, sent: Ints) -> NDArray[np.bool_]:
    """Tell which requests were sent late and were due when all slots were taken.

    Each worker has slots of its own, so with several of them they can be taken before all are. A slot that was
    given up just now is taken by those that were due before.
    """
    starts, ends = (np.sort(column) for column in spans(case.log))
    in_flight = np.searchsorted(starts, due, "left") - np.searchsorted(ends, due, "left")
    slots = case.load.concurrency * (1.0 if case.log.client.workers == 1 else CONCURRENCY_SHARE)
    queued = np.searchsorted(np.sort(due), due, "left") - np.searchsorted(np.sort(sent), due, "left")
    about_full = in_flight >= min(slots - 1, CONCURRENCY_SHARE * slots)
    taken = (in_flight >= slots) | (about_full & (in_flight + queued >= slots))
    return np.asarray((sent - due > LATE_S * 1e9) & taken, dtype=np.bool_)


CLIENT_RULES: tuple[Rule, ...] = (
    concurrency,
    client_lag,
    merged_reads,
    late_ends,
    worker_cpu,
    sending_rate,
    slot_wait,
)
