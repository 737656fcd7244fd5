"""Rules about the answers: did they come, and are they as long as asked?"""

from collections.abc import Iterator

import numpy as np

from prony.base.finding import Finding, Severity
from prony.base.units import significant
from prony.measure.eventlog import Fault
from prony.measure.rules.case import Case, Rule, verdict
from prony.spec.workload import MultiTurn

FAILED_SHARE_INVALID = 0.01
INPUT_DRIFT_WARN, INPUT_DRIFT_INVALID = 0.01, 0.05
IDENTITY_TOLERANCE = 1e-6
ENGINE_TOKENS_TOLERANCE = 0.01


def failed_requests(case: Case) -> Iterator[Finding]:
    """Any failure warns; more than 1 %, or nothing completed, is invalid: the served load was not the asked one."""
    asked, done = len(case.log.requests), len(case.made)
    failed = asked - done
    if not failed and asked:
        return
    severity: Severity = "invalid" if not done or failed > FAILED_SHARE_INVALID * asked else "warn"
    what = f"{failed} of {asked} requests failed" if asked else "no request was sent"
    yield verdict(
        "failed-requests",
        severity,
        f"{what}{': ' if failed else ''}{'; '.join(_faults(case))}",
        _advice(case),
        "\n".join(f"request {index}: {text}" for index, text in case.log.messages[:20]),
    )


def _advice(case: Case) -> str:
    """Say what to do about the commonest fault."""
    faults, statuses = case.log.requests.fault, case.log.requests.status
    failed = faults[faults != Fault.OK]
    commonest = Fault(int(np.bincount(failed).argmax())) if len(failed) else Fault.OK
    refused = commonest is Fault.HTTP_STATUS and bool(((statuses >= 400) & (statuses < 500) & (statuses != 429)).any())
    if refused:
        return "the server refuses these requests: check the model's name, the endpoint and what the message says"
    if commonest is Fault.CANCELLED:
        return "the load was ended before they were: measure again, and let it run to its end"
    if commonest is Fault.TIMEOUT:
        return "allow more time for a request, or lower the concurrency"
    return "read the server's log; lower the concurrency if it ran out of memory or connections"


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
        yield verdict(
            "usage-missing",
            "invalid",
            f"the server gave no token counts for {missing} of {len(case.made)} completed requests",
            "use an engine that answers stream_options.include_usage with a usage event",
        )


def output_length(case: Case) -> Iterator[Finding]:
    """Every request must generate what was asked (the load ignores end-of-sequence)."""
    requests = case.log.requests
    done = (requests.fault == Fault.OK) & (requests.output_counted >= 0) & (requests.output_planned >= 0)
    asked, made = requests.output_planned[done], requests.output_counted[done]
    off = int((asked != made).sum())
    if off:
        yield verdict(
            "output-length",
            "invalid",
            f"{off} of {len(asked)} requests generated another number of tokens than asked:"
            f" {int(made.sum())} instead of {int(asked.sum())} tokens in all",
            "make the server honour ignore_eos and min_tokens, and check that its context holds ISL + OSL",
        )


def input_length(case: Case) -> Iterator[Finding]:
    """The server must see the prompts that were planned: within 1 %, and never off by more than 5 %."""
    requests = case.log.requests
    done = (requests.fault == Fault.OK) & (requests.input_counted >= 0) & (requests.input_planned >= 0)
    asked, seen = int(requests.input_planned[done].sum()), int(requests.input_counted[done].sum())
    talked = isinstance(case.load.workload, MultiTurn)
    if abs(seen - asked) > INPUT_DRIFT_WARN * asked:
        lengths = case.log.client.prompt_lengths
        yield verdict(
            "input-length",
            "invalid" if abs(seen - asked) > INPUT_DRIFT_INVALID * asked and not talked else "warn",
            f"the server counted {seen} input tokens where {asked} were planned ({seen / max(asked, 1) - 1:+.1%})",
            "conversations carry the template's tokens and what the model answered: compare by the counted lengths"
            if talked
            else f"prompt lengths came from {lengths}; use token ids or the server's own tokenizer,"
            " and the completions endpoint (a chat template adds tokens)",
        )


def token_identities(case: Case) -> Iterator[Finding]:
    """Input + output = total; tokens per event add up to usage; cached tokens are input tokens."""
    parts = case.value("input_tput"), case.value("output_tput"), case.value("tput")
    if None not in parts:
        tokens_in, tokens_out, total = (part or 0.0 for part in parts)
        if abs(tokens_in + tokens_out - total) > IDENTITY_TOLERANCE * total:
            yield verdict(
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
        yield verdict(
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
        yield verdict(
            "streamed-tokens",
            "warn",
            f"in {off} of {int(compared.sum())} requests the tokens per event do not add up to the final usage",
            "inter-token latencies then spread the usage evenly over the events",
        )


def single_event(case: Case) -> Iterator[Finding]:
    """An answer that comes in one event has no time between tokens."""
    if not case.log.streamed:
        return
    whole = int(((case.made.events == 1) & (case.made.output_tokens > 1)).sum())
    if whole:
        yield verdict(
            "single-event",
            "warn",
            f"{whole} of {len(case.made)} answers came in one piece, so they have no TPOT and no interactivity",
            "check that the server streams, and that no proxy buffers the stream",
        )


def engine_tokens(case: Case) -> Iterator[Finding]:
    """The engine's own count must be the client's: within 1 %, or one token per request that another role counted."""
    told, counted = case.log.engine.output_tokens if case.log.engine else None, case.log.requests.output_counted
    if told is None or (case.log.requests.fault != Fault.OK).any() or (counted < 0).any():
        return
    made = int(counted.sum())
    if abs(told - made) > max(ENGINE_TOKENS_TOLERANCE * made, len(counted)):
        yield verdict(
            "engine-tokens",
            "warn",
            f"the engine counted {told} generated tokens in the measured phase, the client received {made}",
            "see that nobody else uses this server while it is measured; else do not trust its usage counts",
        )


ANSWER_RULES: tuple[Rule, ...] = (
    failed_requests,
    counted_tokens,
    output_length,
    input_length,
    token_identities,
    single_event,
    engine_tokens,
)
