"""Can a point run, and as asked? Evaluates the feasibility rules. Pure: facts, the point and its deployment go in."""

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

from prony.base.finding import Finding, Severity, Where
from prony.facts import feasibility as rule
from prony.facts.feasibility import Need, Rule, shipped_rules
from prony.plan.served import Case, Served
from prony.recipe.engines.table import ENGINES
from prony.recipe.engines.tables import version_in
from prony.spec.point import Point

Status = Literal["OK", "TIGHT", "IMPOSSIBLE"]
Values = dict[str, Any]
_SEVERITIES: dict[rule.Severity, Severity] = {"impossible": "error", "tight": "warn", "warn": "info"}
_GIB = 2**30
_UNKNOWN = Served()


def check_point(
    point: Point, served: Served = _UNKNOWN, rules: Sequence[Rule] | None = None, where: Where | None = None
) -> tuple[Finding, ...]:
    """Return what stands against a point: errors make it impossible, warnings tight, notes leave it as it is.

    served: its deployment, or why there is none. where: its key in a master config. rules: None for the shipped ones.
    """
    several = len(point.topology.pools) > 1
    found: list[Finding] = []
    for pool in point.topology.pools:
        case = Case(point, pool, served)
        for one in shipped_rules() if rules is None else rules:
            for values in _hits(one, case):
                finding = _finding(one, values, f"{pool.role}: " if several else "", where)
                if not _said(one, finding, found):
                    found.append(finding)
    return tuple(found)


def status(findings: Sequence[Finding]) -> Status:
    """Return what findings make of a point."""
    severities = {finding.severity for finding in findings}
    return "IMPOSSIBLE" if "error" in severities else "TIGHT" if "warn" in severities else "OK"


def _said(one: Rule, finding: Finding, found: Sequence[Finding]) -> bool:
    """What is not about a pool is told once."""
    whole = isinstance(one.check, rule.MissingRecipe | rule.RecipeRefuses | rule.ImageContainer)
    return whole and any(other.rule == finding.rule for other in found)


def _finding(one: Rule, values: Values, role: str, where: Where | None) -> Finding:
    prefix = "" if isinstance(one.check, rule.MissingRecipe | rule.RecipeRefuses | rule.ImageContainer) else role
    return Finding(
        rule=one.id,
        severity=_SEVERITIES[one.severity],
        message=prefix + one.message.format(**values),
        where=where,
        fix=one.fix.format(**values),
        evidence=one.evidence.format(**values) if "{" in one.evidence else one.evidence,
    )


def _hits(one: Rule, case: Case) -> Iterator[Values]:
    """Yield what a rule finds at one pool, as values for its message."""
    if _applies(one, case):
        yield from _CHECKS[type(one.check)](one.check, case)


def _applies(one: Rule, case: Case) -> bool:
    asked, point = one.applies, case.point
    if asked.engines and case.engine not in asked.engines:
        return False
    if asked.skus and (case.sku is None or case.sku.key not in asked.skus):
        return False
    if asked.models and not any(fnmatchcase(point.model.lower(), glob) for glob in asked.models):
        return False
    if asked.kv_transfers and point.kv_transfer not in asked.kv_transfers:
        return False
    if asked.dp_attention is not None and bool(case.pool.dp_attention) != asked.dp_attention:
        return False
    if asked.recipe is not None and (case.role is not None) != asked.recipe:
        return False
    return _of_checkpoint(one, case) and _of_launch(one, case) and _of_release(one, case)


def _of_checkpoint(one: Rule, case: Case) -> bool:
    asked = one.applies
    if not asked.quant_methods and not asked.formats:
        return True
    if case.known is None:
        return False
    checkpoint = case.known.checkpoint
    if asked.quant_methods and checkpoint.quant_method not in asked.quant_methods:
        return False
    return all(checkpoint.components.get(name) in schemes for name, schemes in asked.formats.items())


def _of_launch(one: Rule, case: Case) -> bool:
    asked = one.applies
    if any(name in case.flags for name in asked.unless_flags):
        return False

    def met(need: Need, said: dict[str, str]) -> bool:
        value = said.get(need.name, need.unset) if case.role else need.unknown
        return value is not None and value in need.values

    return all(met(need, case.flags) for need in asked.flags) and all(met(need, case.env) for need in asked.env)


def _of_release(one: Rule, case: Case) -> bool:
    """Images whose tag names no release are taken for one that has the rule."""
    release = version_in(case.point.image)
    if release is None:
        return True
    return (one.since is None or release >= _version(one.since)) and (
        one.until is None or release < _version(one.until)
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _gemm(check: rule.GemmMultiple, case: Case) -> Iterator[Values]:
    size = getattr(case.known.shape, check.field) if case.known else None
    shards = case.spread.attention
    if size is None or check.factor * size % shards:
        return
    columns = check.factor * size // shards
    if columns % check.multiple:
        fitting = [tp for tp in range(1, shards) if check.factor * size % (tp * check.multiple) == 0]
        yield {
            "factor": check.factor, "size": size, "total": check.factor * size, "n": columns, "shards": shards,
            "multiple": check.multiple, "largest": max(fitting, default=1),
        }  # fmt: skip


def _divisible(check: rule.Divisible, case: Case) -> Iterator[Values]:
    if case.known is None or any(name in case.flags for name in check.redundant_flags):
        return
    shape, spread = case.known.shape, case.spread
    size, shards = {
        "heads": (shape.num_attention_heads, spread.attention),
        "kv-heads": (shape.num_key_value_heads if case.known.model.attention == "gqa" else None, spread.attention),
        "linear-heads": (shape.linear_num_key_heads, spread.attention),
        "experts": (shape.n_routed_experts, case.pool.ep or 1),
        "expert-width": (shape.moe_intermediate_size, spread.width),
    }[check.what]
    if size is None or shards == 1:
        return
    copied = check.what == "kv-heads" and size < shards and shards % size == 0
    if not copied and (size % shards or size // shards % check.block):
        yield {"size": size, "shards": shards, "n": round(size / shards, 1), "block": check.block}


def _room(case: Case, fraction: float) -> tuple[float, Values] | None:
    """Return the bytes that an engine may take of a device, and what messages say of it."""
    if case.sku is None or case.sku.memory_bytes is None or case.held is None or case.known is None:
        return None
    share = case.fraction(fraction)
    budget = case.sku.memory_bytes * share
    told = f" ({share:g} of {_gib(case.sku.memory_bytes)})" if share < 1 else ""
    return budget, {
        "sku": case.sku.label, "budget": _gib(budget), "share": told, "fraction": f"{share:g}",
        "weights": _gib(case.held.weights), "left": _gib(max(0, budget - case.held.weights)),
        "spread": case.spread.text, "memory_source": case.sku.memory_source,
        "known": f"sizes of {case.known.model.name}; formats: {case.known.checkpoint.source}",
    }  # fmt: skip


def _gib(size: float) -> str:
    return f"{size / _GIB:.3g} GiB"


def _memory(check: rule.Memory, case: Case) -> Iterator[Values]:
    room = _room(case, check.fraction)
    if room is None or case.held is None:
        return
    budget, values = room
    if check.what == "weights":
        if case.held.weights > budget:
            yield values
        return
    kv = case.kv_of_request()
    if kv is not None and case.held.weights <= budget < case.held.weights + kv:
        yield {**values, "kv": _gib(kv), "context": case.context}


def _concurrency(check: rule.ConcurrencyRealised, case: Case) -> Iterator[Values]:
    if case.pool.role == "prefill":
        return  # a request is in prefill for a moment only
    if check.what == "limit":
        asked = -(-case.point.concurrency // max(1, case.pool.replicas))
        if case.limit and case.limit[1] < asked:
            yield {"conc": asked, "flag": case.limit[0], "limit": case.limit[1]}
        return
    whole = _room(case, 1.0)
    if whole is None or case.held is None or case.held.weights > whole[0]:
        return  # weights that do not fit are told as that
    fits = _fits(case, check.fraction, drafting=False)
    room, kv = _room(case, check.fraction), case.kv_of_request()
    if fits is not None and fits < case.requests and room is not None and kv is not None:
        yield {
            **room[1], "conc": case.point.concurrency, "requests": case.requests, "context": case.context,
            "kv": _gib(case.requests * kv), "fits": fits,
        }  # fmt: skip


def _fits(case: Case, fraction: float, drafting: bool) -> int | None:
    """Return how many requests' KV a device holds beside the weights; None where that cannot be told."""
    room, kv = _room(case, fraction), case.kv_of_request(drafting)
    if room is None or kv is None or case.held is None or kv <= 0:
        return None
    weights = case.held.weights + (case.held.draft if drafting else 0)
    return max(0, int((room[0] - weights) / kv))


def _draft(check: rule.DraftInStaticBudget, case: Case) -> Iterator[Values]:
    if case.pool.role == "prefill" or not case.drafting or case.held is None:
        return
    without, beside = _fits(case, check.fraction, False), _fits(case, check.fraction, True)
    plain, more = case.kv_of_request(), case.kv_of_request(drafting=True)
    if without is None or beside is None or plain is None or more is None:
        return
    if beside < case.requests <= without:
        yield {
            "draft": _gib(case.held.draft), "draft_kv": _gib(case.requests * (more - plain)), "fits": beside,
            "requests": case.requests, "context": case.context,
        }  # fmt: skip


def _dp_attention(_check: rule.DpAttentionAssert, case: Case) -> Iterator[Values]:
    """What `applies` says is all: the assertion is in the engine."""
    if case.spread.experts > 1:
        yield {"shards": case.spread.experts}


def _env_not_read(check: rule.EnvNotRead, case: Case) -> Iterator[Values]:
    method = case.known.checkpoint.quant_method if case.known else None
    if check.name in case.env and method is not None and method not in check.quant_methods:
        yield {"name": check.name, "quant_method": method, "where": _place(case, check.name)}


def _env_unknown(_check: rule.EnvUnknown, case: Case) -> Iterator[Values]:
    deployment = case.served.deployment
    engine = ENGINES.get(deployment.engine) if deployment else None
    read = engine.env(case.point.image) if engine else frozenset()
    if engine is None or not read:
        return
    for name in case.env:
        if name.startswith(engine.env_prefixes) and name not in read:
            yield {"name": name, "engine": engine.name, "where": _place(case, name), "source": "a checked-in table"}


def _place(case: Case, name: str) -> str:
    """Return where a variable was written."""
    leaf = f"roles.{case.pool.role}.env.{name}"
    origins = case.served.deployment.origins if case.served.deployment else ()
    return next((f"{one.file}:{one.line}" for one in origins if one.leaf == leaf), "the launch")


def _image(check: rule.ImageContainer, case: Case) -> Iterator[Values]:
    if case.sku is None or case.sku.vendor not in check.words:
        return
    parts = [part for part in re.split(r"[^a-z0-9]+", case.point.image.lower()) if part]
    found = {
        vendor: next((word for word in words if any(part.startswith(word) for part in parts)), None)
        for vendor, words in check.words.items()
    }
    others = [(vendor, word) for vendor, word in found.items() if word and vendor != case.sku.vendor]
    if others and found[case.sku.vendor] is None:
        other, word = others[0]
        yield {
            "image": case.point.image, "other": other, "word": word, "sku": case.sku.label, "vendor": case.sku.vendor
        }  # fmt: skip


def _missing(_check: rule.MissingRecipe, case: Case) -> Iterator[Values]:
    if case.served.missing:
        yield {"why": case.served.missing}


def _refused(_check: rule.RecipeRefuses, case: Case) -> Iterator[Values]:
    if case.served.refused:
        yield {"why": case.served.refused, "fix": case.served.fix}


_CHECKS: dict[type, Callable[[Any, Case], Iterator[Values]]] = {
    rule.GemmMultiple: _gemm,
    rule.Divisible: _divisible,
    rule.Memory: _memory,
    rule.ConcurrencyRealised: _concurrency,
    rule.DraftInStaticBudget: _draft,
    rule.DpAttentionAssert: _dp_attention,
    rule.EnvNotRead: _env_not_read,
    rule.EnvUnknown: _env_unknown,
    rule.ImageContainer: _image,
    rule.MissingRecipe: _missing,
    rule.RecipeRefuses: _refused,
}
