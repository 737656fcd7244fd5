"""When a simulated request's tokens come. Pure: the only place to change for another timing model."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Constant latencies in seconds; each event after the first carries `tokens_per_event` tokens."""

    ttft_s: float
    itl_s: float
    prefill_s_per_token: float = 0.0
    tokens_per_event: int = 1


@dataclass(frozen=True)
class TokenEvent:
    """Some tokens, and when they come: seconds after the request was admitted."""

    at_s: float
    tokens: int


def schedule(timing: Timing, prompt_tokens: int, output_tokens: int) -> tuple[TokenEvent, ...]:
    """Return a request's events, one token first.

    Token i (from 0) comes at ttft + i * itl or later in the same event, so that TPOT is itl whatever the event size.
    """
    first_s = timing.ttft_s + timing.prefill_s_per_token * prompt_tokens
    events = [TokenEvent(first_s, 1)]
    done = 1
    while done < output_tokens:
        tokens = min(timing.tokens_per_event, output_tokens - done)
        done += tokens
        events.append(TokenEvent(first_s + (done - 1) * timing.itl_s, tokens))
    return tuple(events)
