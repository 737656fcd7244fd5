"""Which acceptance a deployment gets: real, or the committed value of the curve that fits it."""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.base.errors import ConfigError
from prony.facts.curves import Curve, Thinking, matching
from prony.recipe.deployment import AcceptanceMode, SpecDecode
from prony.recipe.when import Purpose
from prony.spec.point import Point


@dataclass(frozen=True)
class Drafting:
    """What identifies a curve beside the checkpoint. drafter: `self` is the checkpoint's own head."""

    spec: SpecDecode
    drafter: str
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
    spec, place = drafting.spec, drafting.place
    if spec.topk != 1:
        raise ConfigError(f"{place}: curves are of chains, this drafts a tree", allowed="spec.topk: 1")
    method = METHOD_OF_CURVE.get(spec.method, spec.method)
    fits = matching(curves, model, method, drafting.drafter, spec.draft_sample, spec.rejection)
    if len(fits) == 1:
        return Golden(_length(fits[0], drafting), fits[0])
    if fits:
        raise ConfigError(
            f"{place}: several acceptance curves are of {model} with {spec.method}",
            allowed="one of: " + ", ".join(f"{curve.name} ({curve.file})" for curve in fits),
            fix="keep one of them, or let their drafters differ",
        )
    of_model = [_identity(curve) for curve in curves if curve.serves(model)]
    said = f"drafter {drafting.drafter}, draft_sample {spec.draft_sample}, rejection {spec.rejection}"
    raise ConfigError(
        f"{place}: no acceptance curve is of {model} with {spec.method} ({said})",
        allowed="; ".join(of_model) or "curves of: " + ", ".join(sorted(curve.name for curve in curves)),
        fix="mend spec, collect a curve (prony acceptance collect) and commit it, or say 'acceptance: real'",
    )


def _identity(curve: Curve) -> str:
    said = f"drafter {curve.drafter}, draft_sample {curve.draft_sample}, rejection {curve.rejection}"
    return f"{curve.name}: method {curve.method}, {said}"


# EAGLE and NEXTN name in SGLang what the others call MTP: the checkpoint's own head drafts.
METHOD_OF_CURVE = {"eagle": "mtp", "nextn": "mtp"}


def _length(curve: Curve, drafting: Drafting) -> float:
    try:
        return curve.length(drafting.spec.steps, drafting.thinking)
    except ConfigError as error:
        raise ConfigError(f"{drafting.place}: {error.message}", allowed=error.allowed, fix=error.fix) from None
