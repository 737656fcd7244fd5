"""Feasibility rules as data: what cannot run, or not as asked, each with its evidence. `plan` evaluates them."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from prony.base.errors import ConfigError
from prony.base.model import Frozen
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml
from prony.facts.models import Component, Scheme
from prony.facts.skus import Vendor

Severity = Literal["impossible", "tight", "warn"]
"""It cannot run; it runs, but not as its labels say, or perhaps; it is worth knowing."""
VERSION = r"^\d+(\.\d+)*$"


class Need(Frozen):
    """A flag or a variable that must have one of some values.

    unset: what counts where a recipe does not set it; unknown: what counts where there is no recipe. None: nothing.
    """

    name: str
    values: tuple[str, ...]
    unset: str | None = None
    unknown: str | None = None


class Applies(Frozen):
    """Where a rule looks; empty tuples and None exclude nothing.

    engines: those that serve, also behind Dynamo or llm-d. models: globs over ids. formats: component → format.
    unless_flags: the rule does not apply where one of them is set. recipe: only with, or only without one.
    """

    engines: tuple[str, ...] = ()
    skus: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    quant_methods: tuple[str, ...] = ()
    kv_transfers: tuple[str, ...] = ()
    formats: dict[Component, tuple[Scheme, ...]] = Field(default_factory=dict)
    flags: tuple[Need, ...] = ()
    env: tuple[Need, ...] = ()
    unless_flags: tuple[str, ...] = ()
    dp_attention: bool | None = None
    recipe: bool | None = None


class GemmMultiple(Frozen):
    """The columns of a shard, factor * field / attention TP, must be a multiple."""

    kind: Literal["gemm-n-multiple"]
    factor: int = Field(ge=1)
    field: Literal["linear_num_value_heads"]
    multiple: int = Field(ge=1)


class Divisible(Frozen):
    """A size must divide among devices: its share must be whole, and a multiple of `block`.

    kv-heads fewer than devices are copied, so that devices must then be a multiple of them. redundant_flags: those that
    add copies of experts; with one of them set any number may divide.
    """

    kind: Literal["divisible"]
    what: Literal["heads", "kv-heads", "linear-heads", "experts", "expert-width"]
    block: int = Field(default=1, ge=1)
    redundant_flags: tuple[str, ...] = ()


class Memory(Frozen):
    """Weights (what: weights), or weights with the KV of one request (what: request), must fit a device.

    fraction: of the device's memory that the engine may take where nobody says it.
    """

    kind: Literal["memory"]
    what: Literal["weights", "request"]
    fraction: float = Field(default=1.0, gt=0, le=1)


class ConcurrencyRealised(Frozen):
    """The asked concurrency must be allowed (what: limit) and its KV must fit (what: kv-pool)."""

    kind: Literal["concurrency-realised"]
    what: Literal["limit", "kv-pool"]
    fraction: float = Field(default=0.9, gt=0, le=1)


class DraftInStaticBudget(Frozen):
    """What holds the concurrency without drafting must hold it with the draft layer's weights and KV."""

    kind: Literal["draft-in-static-budget"]
    fraction: float = Field(default=0.9, gt=0, le=1)


class DpAttentionAssert(Frozen):
    """An assertion of the engine fires where DP attention meets what `applies` says."""

    kind: Literal["dp-attention-assert"]


class EnvNotRead(Frozen):
    """A variable is set that nothing reads with this checkpoint: only those of quant_methods read it."""

    kind: Literal["env-not-read"]
    name: str
    quant_methods: tuple[str, ...]


class EnvUnknown(Frozen):
    """A variable of the engine is set that the release in the image does not read."""

    kind: Literal["env-unknown"]


class ImageContainer(Frozen):
    """An image's name must not be of another vendor. words: vendor → words of its images."""

    kind: Literal["image-container"]
    words: dict[Vendor, tuple[str, ...]]


class MissingRecipe(Frozen):
    """No recipe serves the point."""

    kind: Literal["missing-recipe"]


class RecipeRefuses(Frozen):
    """A recipe serves the key, but refuses the point: labels, flags or image would not be what the key says."""

    kind: Literal["recipe-refuses"]


Check = Annotated[
    GemmMultiple
    | Divisible
    | Memory
    | ConcurrencyRealised
    | DraftInStaticBudget
    | DpAttentionAssert
    | EnvNotRead
    | EnvUnknown
    | ImageContainer
    | MissingRecipe
    | RecipeRefuses,
    Field(discriminator="kind"),
]


class Rule(Frozen):
    """One rule. since, until: releases of the engine, the first that has it and the first that has it no more.

    message, fix: with {names} that the check fills in. evidence: who saw it, or which code asks for it.
    """

    id: str = Field(pattern=r"^[a-z0-9-]+$")
    severity: Severity
    since: str | None = Field(default=None, pattern=VERSION)
    until: str | None = Field(default=None, pattern=VERSION)
    applies: Applies = Applies()
    check: Check
    message: str = Field(min_length=1)
    fix: str = Field(min_length=1)
    evidence: str = Field(min_length=1)


class RuleFile(Frozen):
    """A file of rules."""

    schema_version: Literal["feasibility/1"] = Field(alias="schema")
    rules: tuple[Rule, ...]


def read_rules(document: YamlMap) -> tuple[Rule, ...]:
    """Check the YAML of a file of rules. Raises ConfigError with file:line."""
    return validate(RuleFile, document, "feasibility rules").rules


@cache
def shipped_rules() -> tuple[Rule, ...]:
    """Return the rules that come with Prony. Raises ConfigError with file:line, also for two of one id."""
    found: dict[str, Rule] = {}
    for path in sorted(Path(str(files("prony.facts") / "feasibility")).glob("*.yaml")):
        for rule in read_rules(load_yaml(path)):
            if rule.id in found:
                raise ConfigError(f"{path}: two rules are called '{rule.id}'", fix="rename one of them")
            found[rule.id] = rule
    return tuple(found.values())
