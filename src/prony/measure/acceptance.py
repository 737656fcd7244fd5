"""Acceptance of drafts: what was asked, what the engine's counters say came out, and whether they agree."""

import math

from prony.base.finding import Finding
from prony.base.model import Frozen
from prony.measure.observed import Acceptance, EngineFacts
from prony.measure.rules.case import verdict

TOLERANCE = 0.02
STANDARD_ERRORS = 3.0
FEWEST_DRAFTS = 10_000


class Realised(Frozen):
    """Tokens per verification step with the standard error of the mean, by counters; error None: positions not told."""

    length: float
    standard_error: float | None
    drafts: int
    rates: tuple[float, ...]


def realised(engine: EngineFacts | None) -> Realised | None:
    """Return the length 1 + accepted / drafts; None without counters or drafts.

    Position i counts the drafts of which more than i tokens were accepted, so that E[A^2] is the sum of (2i + 1) of
    these shares and the variance of A follows; drafts are taken as independent, a lower bound of the doubt.
    """
    if engine is None or not engine.drafts or engine.accepted is None:
        return None
    drafts, mean = engine.drafts, engine.accepted / engine.drafts
    rates = tuple(count / drafts for count in engine.accepted_at)
    error = None
    if rates and sum(engine.accepted_at) == engine.accepted and drafts > 1:
        square = sum((2 * position + 1) * rate for position, rate in enumerate(rates))
        error = math.sqrt(max(0.0, square - mean * mean) / (drafts - 1))
    return Realised(length=1 + mean, standard_error=error, drafts=drafts, rates=rates)


def judge_acceptance(asked: Acceptance) -> tuple[Finding, ...]:
    """Hold what came out against the committed length.

    They must agree within 2 % or three standard errors, whichever is more: invalid when they do not, a warning below
    10,000 drafts. Golden acceptance that no counter confirms is a warning.
    """
    if asked.asked is None:
        return ()
    if asked.realised is None:
        message = f"acceptance was to be {asked.asked}, and the engine tells no counters that confirm it"
        return (verdict("acceptance-unknown", "warn", message, "serve the engine's metrics, or read its log"),)
    bound = max(TOLERANCE * asked.asked, STANDARD_ERRORS * (asked.standard_error or 0.0))
    off = asked.realised - asked.asked
    if abs(off) <= bound:
        return ()
    drafts = asked.drafts or 0
    few = drafts < FEWEST_DRAFTS
    error = "" if asked.standard_error is None else f" ± {asked.standard_error:.3f}"
    return (
        verdict(
            "acceptance",
            "warn" if few else "invalid",
            f"{asked.realised:.3f}{error} tokens a step came out where {asked.asked} were asked by {asked.curve} "
            f"({off / asked.asked:+.1%}; {drafts:,} drafts{', too few for a verdict' if few else ''})",
            "check the engine's simulated acceptance and its draft length; the numbers belong to another acceptance",
        ),
    )
