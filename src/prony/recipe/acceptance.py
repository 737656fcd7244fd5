"""Which acceptance a deployment gets: real, or the committed value of the curve that fits it."""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.base.errors import ConfigError
from prony.facts.curves import Curve, Thinking, matching
from prony.recipe.deployment import AcceptanceMode
from prony.recipe.when import Purpose
from prony.spec.point import Point


@dataclass(frozen=True)
class Drafting:
    """What identifies a curve: how is drafted, how many tokens in a row, and what the recipe says of the drafter."""

    method: str
    steps: int
    topk: int
    drafter: str | None
    draft_sample: str | None
    rejection: str | None
    thinking: Thinking
    place: str


@dataclass(frozen=True)
class Golden:
    """A committed acceptance length and the curve that it is from."""

    length: float
    curve: Curve


def mode_of(point: Point, purpose: Purpose, said: AcceptanceMode | None) -> AcceptanceMode:
    """Return how drafts are accepted.

    An eval is always real: simulated acceptance commits tokens that the model did not choose. What a recipe says comes
    next; unsaid, agentic throughput is golden (its text is replayed: real acceptance would be chance), all else real.
    """
    if purpose == "eval":
        return "real"
    return said or ("golden" if point.workload.kind == "agentic-coding" else "real")


def golden(curves: Sequence[Curve], model: str, drafting: Drafting) -> Golden:
    """Return the committed acceptance length. Raises ConfigError: no curve, several, or none at this draft length."""
    fits = matching(
        curves,
        model,
        method=_METHOD.get(drafting.method, drafting.method),
        drafter=drafting.drafter,
        draft_sample=drafting.draft_sample,
        rejection=drafting.rejection,
    )
    if drafting.topk != 1:
        raise ConfigError(f"{drafting.place}: curves are of chains, this drafts a tree", allowed="spec.topk: 1")
    if len(fits) == 1:
        return Golden(_length(fits[0], drafting), fits[0])
    if fits:
        told = "; ".join(
            f"{curve.name}: drafter {curve.drafter}, draft_sample {curve.draft_sample}, rejection {curve.rejection}"
            for curve in fits
        )
        raise ConfigError(
            f"{drafting.place}: several acceptance curves are of {model} with {drafting.method}",
            allowed=told,
            fix="say which by spec.drafter, spec.draft_sample or spec.rejection",
        )
    of_model = [f"{curve.name} ({curve.method})" for curve in curves if curve.serves(model)]
    raise ConfigError(
        f"{drafting.place}: no acceptance curve is of {model} with {drafting.method}",
        allowed=", ".join(of_model) or "curves of: " + ", ".join(sorted(curve.name for curve in curves)),
        fix="collect one (prony acceptance collect) and commit it, or say 'acceptance: real'",
    )


# EAGLE and NEXTN name in SGLang what the others call MTP: the checkpoint's own head drafts.
_METHOD = {"eagle": "mtp", "nextn": "mtp"}


def _length(curve: Curve, drafting: Drafting) -> float:
    try:
        return curve.length(drafting.steps, drafting.thinking)
    except ConfigError as error:
        raise ConfigError(f"{drafting.place}: {error.message}", allowed=error.allowed, fix=error.fix) from None
