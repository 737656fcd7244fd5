"""Is this load valid? Rules over an event log and its measurements; each gives findings in plain words.

`warn` leaves a result usable, `invalid` does not. Bounds that a busy small machine can break through no fault of the
server (lags, merged reads, achieved concurrency) are `warn`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from prony.base.finding import Finding, Severity
from prony.base.units import duration, significant
from prony.measure.definitions import Generation, generation
from prony.measure.eventlog import EventLog, Fault
from prony.measure.inflight import mean_in_flight, measured_window
from prony.measure.result import Measurement
from prony.spec.load import LoadPlan

FAILED_SHARE_INVALID = 0.01
INPUT_DRIFT_WARN, INPUT_DRIFT_INVALID = 0.01, 0.05
LITTLE_TOLERANCE = 0.05
IDENTITY_TOLERANCE = 1e-6
# Share of the mean end-to-end latency that a late send may take before it changes the offered load.
LAG_SHARE_OF_E2EL = 0.05
# With stamps taken in the loop, its lag is added to token times: bounded against the mean time per output token.
LAG_SHARE_OF_TPOT = 0.1
CONCURRENCY_SHARE = 0.9
MERGED_SHARE = 0.05
# Of the time of all cores. Booking by ticks errs by about 1 % over 5 s on two busy cores.
FOREIGN_CPU_SHARE = 0.1
ENGINE_TOKENS_TOLERANCE = 0.01


@dataclass(frozen=True)
class Case:
    """What the rules look at."""

    log: EventLog
    load: LoadPlan
    made: Generation
    values: dict[tuple[str, str], float]

    def value(self, metric: str, stat: str = "value") -> float | None:
        """Return one measurement, or None when it was not measured."""
        return self.values.get((metric, stat))


Rule = Callable[[Case], Iterator[Finding]]


def judge(log: EventLog, load: LoadPlan, measurements: tuple[Measurement, ...]) -> tuple[Finding, ...]:
    """Return the verdicts about one load; none means that nothing is wrong with it."""
    values = {(found.metric, found.stat): found.value for found in measurements}
    case = Case(log=log, load=load, made=generation(log), values=values)
    return tuple(finding for rule in RULES for finding in rule(case))


def _verdict(rule: str, severity: Severity, message: str, fix: str, evidence: str = "") -> Finding:
    return Finding(rule=f"verdict/{rule}", severity=severity, message=message, fix=fix, evidence=evidence)


def failed_requests(case: Case) -> Iterator[Finding]:
    """Any failure warns; more than 1 %, or nothing completed, is invalid: the served load was not the asked one."""
    asked, done = len(case.log.requests), len(case.made)
    failed = asked - done
    if not failed and asked:
        return
    severity: Severity = "invalid" if not done or failed > FAILED_SHARE_INVALID * asked else "warn"
    what = f"{failed} of {asked} requests failed" if asked else "no request was sent"
    yield _verdict(
        "failed-requests",
        severity,
        f"{what}{': ' if failed else ''}{'; '.join(_faults(case))}",
        "read the server's log in logs/; lower the concurrency if it ran out of memory or connections",
        "\n".join(f"request {index}: {text}" for index, text in case.log.messages[:20]),
    )


def _faults(case: Case) -> Iterator[str]:
    faults = case.log.requests.fault
    messages = dict(reversed(case.log.messages))
    for fault in np.unique(faults[faults != Fault.OK]):
        where = np.flatnonzero(faults == fault)
        first = next((messages[index] for index in where.tolist() if index in messages), "")
        name = Fault(int(fault)).name.lower().replace("_", " ")
        yield f"{len(where)} × {name}" + (f" ({first})" if first else "")
    silent = int((faults == Fault.OK).sum()) - len(case.made)
    if silent:
        yield f"{silent} × ended without a generated token"


def counted_tokens(case: Case) -> Iterator[Finding]:
    """Without the server's counts there is no throughput and no TPOT."""
    missing = int(((case.made.input_tokens < 0) | (case.made.output_tokens < 0)).sum())
    if missing:
        yield _verdict(
            "usage-missing",
            "invalid",
            f"the server gave no token counts for {missing} of {len(case.made)} completed requests",
            "use an engine that answers stream_options.include_usage with a usage event",
        )


def output_length(case: Case) -> Iterator[Finding]:
    """Every request must generate what was asked (the load ignores end-of-sequence)."""
    requests = case.log.requests
    done = (requests.fault == Fault.OK) & (requests.output_counted >= 0)
    asked, made = requests.output_planned[done], requests.output_counted[done]
    off = int((asked != made).sum())
    if off:
        yield _verdict(
            "output-length",
            "invalid",
            f"{off} of {len(asked)} requests generated another number of tokens than asked:"
            f" {int(made.sum())} instead of {int(asked.sum())} tokens in all",
            "make the server honour ignore_eos and min_tokens, and check that its context holds ISL + OSL",
        )


def input_length(case: Case) -> Iterator[Finding]:
    """The server must see the prompts that were planned: within 1 %, and never off by more than 5 %."""
    requests = case.log.requests
    done = (requests.fault == Fault.OK) & (requests.input_counted >= 0)
    asked, seen = int(requests.input_planned[done].sum()), int(requests.input_counted[done].sum())
    if abs(seen - asked) > INPUT_DRIFT_WARN * asked:
        yield _verdict(
            "input-length",
            "invalid" if abs(seen - asked) > INPUT_DRIFT_INVALID * asked else "warn",
            f"the server counted {seen} input tokens where {asked} were planned ({seen / max(asked, 1) - 1:+.1%})",
            f"prompt lengths came from {case.log.client.prompt_lengths}; use token ids or the server's own tokenizer,"
            " and the completions endpoint (a chat template adds tokens)",
        )


def littles_law(case: Case) -> Iterator[Finding]:
    """Requests in flight, by stream ends, must equal request rate × mean end-to-end latency, by token events.

    Both sides are over the whole measured window, so ramp and drain cancel and few requests do no harm.
    """
    window, done = measured_window(case.log), len(case.made)
    rate, latency = case.value("request_rate"), case.value("e2el", "mean")
    if not window or window.seconds <= 0 or not rate or latency is None or done < len(case.log.requests):
        return
    seen = mean_in_flight(case.log, window)
    ratio = rate * latency / seen
    if abs(ratio - 1) > LITTLE_TOLERANCE:
        yield _verdict(
            "littles-law",
            "warn",
            f"{significant(seen)} requests were in flight on average, but {significant(rate)} req/s ×"
            f" {duration(latency)} gives {significant(rate * latency)} (ratio {significant(ratio)}, expected 1 ± 0.05)",
            "streams stay open after their last token, or a clock or a count is wrong: look at the event log",
        )


def token_identities(case: Case) -> Iterator[Finding]:
    """Input + output = total; tokens per event add up to usage; cached tokens are input tokens."""
    parts = case.value("input_tput"), case.value("output_tput"), case.value("tput")
    if None not in parts:
        tokens_in, tokens_out, total = (part or 0.0 for part in parts)
        if abs(tokens_in + tokens_out - total) > IDENTITY_TOLERANCE * total:
            yield _verdict(
                "token-identity",
                "invalid",
                f"input {significant(tokens_in)} + output {significant(tokens_out)} is not total"
                f" {significant(total)} tok/s",
                "report this: the measurements contradict themselves",
            )
    yield from _streamed_tokens(case)
    requests = case.log.requests
    over = int(((requests.cached_counted > requests.input_counted) & (requests.input_counted >= 0)).sum())
    if over:
        yield _verdict(
            "cached-tokens",
            "warn",
            f"{over} requests report more cached than input tokens",
            "do not trust this server's cache counts",
        )


def _streamed_tokens(case: Case) -> Iterator[Finding]:
    events, requests = case.log.events, case.log.requests
    told = events.tokens >= 0
    if not told.any():
        return
    streamed = np.bincount(events.request[told], weights=events.tokens[told], minlength=len(requests))
    silent = np.bincount(events.request[told], minlength=len(requests)) == 0
    compared = (requests.fault == Fault.OK) & (requests.output_counted >= 0) & ~silent
    off = int((streamed != requests.output_counted)[compared].sum())
    if off:
        yield _verdict(
            "streamed-tokens",
            "warn",
            f"in {off} of {int(compared.sum())} requests the tokens per event do not add up to the final usage",
            "inter-token latencies then spread the usage evenly over the events",
        )


def single_event(case: Case) -> Iterator[Finding]:
    """An answer that comes in one event has no time between tokens."""
    whole = int(((case.made.events == 1) & (case.made.output_tokens > 1)).sum())
    if whole:
        yield _verdict(
            "single-event",
            "warn",
            f"{whole} of {len(case.made)} answers came in one piece, so they have no TPOT and no interactivity",
            "check that the server streams, and that no proxy buffers the stream",
        )


def concurrency(case: Case) -> Iterator[Finding]:
    """While the loop was full it must have held the asked concurrency (less when there are fewer requests)."""
    achieved = case.value("concurrency_achieved")
    asked = min(case.load.concurrency, len(case.log.requests))
    if achieved is not None and achieved < CONCURRENCY_SHARE * asked:
        yield _verdict(
            "concurrency",
            "warn",
            f"{significant(achieved)} requests were in flight while the loop was full, {asked} were asked",
            "the client was late to send the next request: give it more CPU, or cores of its own",
        )


def client_lag(case: Case) -> Iterator[Finding]:
    """Late sends change the load; a late loop changes the stamps too when it takes them itself."""
    client, latency, per_token = case.log.client, case.value("e2el", "mean"), case.value("tpot", "mean")
    bound = LAG_SHARE_OF_E2EL * latency if latency else None
    fix = "give the client cores of its own; the server's numbers may be better than shown"
    for rule, words, lag in (
        ("send-lag", "requests were sent late by", client.send_lag_p99_s),
        ("loop-lag", "the client's loop ran late by", client.loop_lag_p99_s),
    ):
        if bound is not None and lag > bound:
            yield _verdict(
                rule,
                "warn",
                f"{words} {duration(lag)} (p99), more than {LAG_SHARE_OF_E2EL:.0%} of the mean latency"
                f" {duration(latency)}",
                fix,
            )
    if client.clock == "user" and per_token and client.loop_lag_p99_s > LAG_SHARE_OF_TPOT * per_token:
        yield _verdict(
            "stamp-lag",
            "warn",
            f"token times were read from a loop that ran late by {duration(client.loop_lag_p99_s)} (p99), more than"
            f" {LAG_SHARE_OF_TPOT:.0%} of the mean TPOT {duration(per_token)}",
            fix,
        )


def merged_reads(case: Case) -> Iterator[Finding]:
    """Events that wait for one read share a stamp; when the loop is faster than they come, they were sent at once."""
    client = case.log.client
    share = client.merged_reads / client.reads if client.reads else 0.0
    gap_s = case.value("event_gap", "mean")
    if share > MERGED_SHARE and gap_s is not None and client.loop_lag_p99_s > gap_s:
        yield _verdict(
            "merged-reads",
            "warn",
            f"{share:.1%} of reads held more than one event while the client was {duration(client.loop_lag_p99_s)} late"
            " (p99): events share time stamps that they may not share on the wire",
            "read the tail of inter-token latency with care, or give the client cores of its own",
        )


def stamp_clock(case: Case) -> Iterator[Finding]:
    """Say so when the kernel did not stamp the arrivals."""
    if case.log.client.clock == "user":
        yield _verdict(
            "stamp-clock",
            "info",
            "arrivals were stamped by the client process, not by the kernel",
            "run on Linux with SO_TIMESTAMPNS for stamps that do not depend on the client's load",
        )


def clock_steps(case: Case) -> Iterator[Finding]:
    """Kernel stamps are on the wall clock: when it is set, instants around the step rest on a correction."""
    steps = case.log.client.clock_steps
    if steps:
        yield _verdict(
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
            yield _verdict(
                "machine-busy",
                "warn",
                f"{words} {share:.0%} of this machine's CPU while measuring"
                f" ({significant(share * seen.cores)} of {cores})",
                fix,
                f"load average when the measured phase began: {seen.load1:.2f}",
            )


def slots(case: Case) -> Iterator[Finding]:
    """A server with fewer slots than requests in flight queues them, and queueing is in TTFT."""
    told = case.log.engine.slots if case.log.engine else None
    asked = min(case.load.concurrency, len(case.log.requests))
    if told is not None and told < asked:
        yield _verdict(
            "slots",
            "warn",
            f"the server serves {told} request{'' if told == 1 else 's'} at a time, {asked} were asked:"
            " TTFT includes queueing",
            f"raise the server's slots to {asked} in the recipe (llama.cpp: parallel, and ctx-size with it),"
            " or lower the concurrency",
        )


def engine_tokens(case: Case) -> Iterator[Finding]:
    """The engine's own count must be the client's: within 1 %, or one token per request that another role counted."""
    told, counted = case.log.engine.output_tokens if case.log.engine else None, case.log.requests.output_counted
    if told is None or (case.log.requests.fault != Fault.OK).any() or (counted < 0).any():
        return
    made = int(counted.sum())
    if abs(told - made) > max(ENGINE_TOKENS_TOLERANCE * made, len(counted)):
        yield _verdict(
            "engine-tokens",
            "warn",
            f"the engine counted {told} generated tokens in the measured phase, the client received {made}",
            "see that nobody else uses this server while it is measured; else do not trust its usage counts",
        )


RULES: tuple[Rule, ...] = (
    failed_requests,
    counted_tokens,
    output_length,
    input_length,
    littles_law,
    token_identities,
    single_event,
    concurrency,
    client_lag,
    merged_reads,
    stamp_clock,
    clock_steps,
    machine_busy,
    slots,
    engine_tokens,
)
