"""Rules about the flow of requests: Little's law, the server's slots, steady state."""

from collections.abc import Iterator

from prony.base.finding import Finding
from prony.base.units import duration, significant
from prony.measure.inflight import mean_in_flight, measured_window
from prony.measure.rules.case import Case, Rule, verdict

LITTLE_TOLERANCE = 0.05


def littles_ratio(case: Case) -> tuple[float, float] | None:
    """Return requests in flight by stream ends, and by rate × latency, when they contradict each other.

    Both sides are over the whole measured window, so ramp and drain cancel and few requests do no harm.
    """
    window, done = measured_window(case.log), len(case.made)
    rate, latency = case.value("request_rate"), case.value("e2el", "mean")
    if not window or window.seconds <= 0 or not rate or latency is None or done < len(case.log.requests):
        return None
    seen = mean_in_flight(case.log, window)
    return (seen, rate * latency) if abs(rate * latency / seen - 1) > LITTLE_TOLERANCE else None


def littles_law(case: Case) -> Iterator[Finding]:
    """Requests in flight, by stream ends, must equal request rate × mean end-to-end latency, by token events."""
    found = littles_ratio(case)
    if found is None:
        return
    seen, computed = found
    rate, latency = case.value("request_rate"), case.value("e2el", "mean")
    yield verdict(
        "littles-law",
        "warn",
        f"{significant(seen)} requests were in flight on average, but {significant(rate)} req/s ×"
        f" {duration(latency)} gives {significant(computed)} (ratio {significant(computed / seen)}, expected 1 ± 0.05)",
        "streams stay open after their last token, or a clock or a count is wrong: look at the event log",
    )


def steady_state(case: Case) -> Iterator[Finding]:
    """Say why there are no numbers of the steady state."""
    if not len(case.made) or case.steady.state == "steady":
        return
    short = case.steady.state == "short"
    yield verdict(
        "steady-state",
        "info" if short else "warn",
        f"{'too short to tell a steady state' if short else 'the load was never steady'}: {case.steady.why}",
        "send more requests; the numbers of the whole load hold, ramp and drain included"
        if short
        else "send more requests, or fewer at a time if the server falls behind; the whole load's numbers mix both",
    )


def slots(case: Case) -> Iterator[Finding]:
    """A server with fewer slots than requests in flight queues them, and queueing is in TTFT."""
    told = case.log.engine.slots if case.log.engine and not case.open_loop else None
    asked = min(case.load.concurrency, len(case.log.requests))
    if told is not None and told < asked:
        yield verdict(
            "slots",
            "warn",
            f"the server serves {told} request{'' if told == 1 else 's'} at a time, {asked} were asked:"
            " TTFT includes queueing",
            f"raise the server's slots to {asked} in the recipe (llama.cpp: parallel, and ctx-size with it),"
            " or lower the concurrency",
        )


FLOW_RULES: tuple[Rule, ...] = (littles_law, slots, steady_state)
