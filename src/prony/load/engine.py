"""What the servers say of themselves: slots, and counters before and after the measured phase."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson

from prony.base.fetch import fetch
from prony.load.exposition import samples
from prony.measure.observed import EngineFacts
from prony.recipe.engines.telling import ALL

_TIMEOUT_S = 2.0
_MOST_BYTES = 1 << 24
_OUTPUT = tuple(one.generated_tokens for one in ALL if one.generated_tokens)
_DRAFTS = tuple(one.drafts.drafts for one in ALL if one.drafts.drafts)
_ACCEPTED = tuple(one.drafts.accepted for one in ALL if one.drafts.accepted)
_ACCEPTED_AT = tuple(one.drafts.per_position for one in ALL if one.drafts.per_position)
_EXTERNAL_HITS = tuple(one.external_hits for one in ALL if one.external_hits)


@dataclass(frozen=True)
class Counters:
    """Counters at one instant, summed over servers and labels; None: a server does not tell."""

    output_tokens: float | None = None
    drafts: float | None = None
    accepted: float | None = None
    accepted_at: Mapping[int, float] | None = None
    external_hits: float | None = None


def read_counters(urls: Iterable[str]) -> Counters | None:
    """Ask every server for /metrics; None when there is none or one does not answer."""
    texts = [_get(url, "/metrics") for url in urls]
    if not texts or any(text is None for text in texts):
        return None
    sums: list[dict[str, float]] = []
    at: defaultdict[int, float] = defaultdict(float)
    for text in texts:
        found: defaultdict[str, float] = defaultdict(float)
        for sample in samples((text or b"").decode(errors="replace")):
            found[sample.name] += sample.value
            position = sample.labels.get("position", "")
            if sample.name in _ACCEPTED_AT and position.isdecimal():
                at[int(position)] += sample.value
        sums.append(found)
    output, drafts, accepted, hits = (_total(sums, names) for names in (_OUTPUT, _DRAFTS, _ACCEPTED, _EXTERNAL_HITS))
    return Counters(output, drafts, accepted, dict(at), hits)


def read_slots(urls: Iterable[str]) -> int | None:
    """Return how many requests the servers serve at once (llama.cpp tells at /props), None when one does not tell."""
    slots = [_slots(_get(url, "/props")) for url in urls]
    told = [one for one in slots if one is not None]
    return sum(told) if told and len(told) == len(slots) else None


def engine_facts(before: Counters | None, after: Counters | None, slots: int | None) -> EngineFacts | None:
    """Return what was counted between two readings; None when nothing is known."""
    if before is None or after is None:
        return None if slots is None else EngineFacts(slots=slots)
    at, was = after.accepted_at or {}, before.accepted_at or {}
    return EngineFacts(
        slots=slots,
        output_tokens=_grown(before.output_tokens, after.output_tokens),
        drafts=_grown(before.drafts, after.drafts),
        accepted=_grown(before.accepted, after.accepted),
        accepted_at=tuple(max(0, round(at[position] - was.get(position, 0.0))) for position in sorted(at)),
        external_hits=_grown(before.external_hits, after.external_hits),
    )


def _total(sums: list[dict[str, float]], names: tuple[str, ...]) -> float | None:
    told = [next((found[name] for name in names if name in found), None) for found in sums]
    return None if None in told else sum(value or 0.0 for value in told)


def _grown(before: float | None, after: float | None) -> int | None:
    """Return how far a counter came; None when it is not there or went back (the server was started anew)."""
    return None if before is None or after is None or after < before else round(after - before)


def _slots(body: bytes | None) -> int | None:
    try:
        told = orjson.loads(body) if body else None
    except orjson.JSONDecodeError:
        return None
    slots = told.get("total_slots") if isinstance(told, dict) else None
    return slots if isinstance(slots, int) and not isinstance(slots, bool) and 0 < slots < 1 << 31 else None


def _get(url: str, path: str) -> bytes | None:
    return fetch(url, path, _TIMEOUT_S, _MOST_BYTES)
