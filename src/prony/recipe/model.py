"""The form of a recipe file, and a recipe as it is kept: leaves with their places, rules with their conditions."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from prony.base.errors import ConfigError
from prony.base.model import Frozen
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap
from prony.recipe.deployment import ENV_NAME, AcceptanceMode, ModelFile, Patch, SpecMethod, fault_of_word
from prony.recipe.leaves import Leaf, flatten
from prony.recipe.when import NUMBER_NAMES, Condition, read_conditions
from prony.spec import expression
from prony.spec.load import MAX_SECONDS

MAX_RULES = 12
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_NOT_LEAVES = frozenset({"schema", "extends", "keys", "rules", "when"})


def seconds_of(text: Any) -> float:
    """Return the seconds of a duration such as 90s, 30m or 1.5h. Raises ValueError."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None or float(match[1]) == 0:
        raise ValueError("must be a duration such as 90s, 30m or 1h")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds > MAX_SECONDS:
        raise ValueError(f"must be at most {MAX_SECONDS / 3600:g}h")
    return seconds


def _duration(value: Any) -> Any:
    if value is not None:
        seconds_of(value)
    return value


def _argument(value: Any) -> Any:
    """Refuse what can't be a flag: YAML's false is neither "off" nor "absent"."""
    if value is False or value == []:
        raise ValueError("must be a value, true (a bare flag), null (deletes it) or a list (repeats the flag)")
    for item in value if isinstance(value, list) else [value]:
        _plain(item, also_true=not isinstance(value, list))
    return value


def _variable(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError('must be text: put it in quotes, "1" or "true"')
    _plain(value)
    return value


def _plain(value: Any, also_true: bool = False) -> None:
    """Refuse what has no plain text, and expressions that can't be right at any point."""
    if isinstance(value, bool) and not also_true:
        raise ValueError("must be text or a number: put true and false in quotes")
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError("must be text or a number")
    if isinstance(value, str):
        _expression(value)


def _expression(value: Any) -> Any:
    if isinstance(value, str):
        try:
            expression.check(value, NUMBER_NAMES)
        except ConfigError as error:
            raise ValueError(f"{error.message}; allowed: {error.allowed or error.fix}") from None
    return value


def _count(value: Any) -> Any:
    """Take a count: an integer or an expression."""
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise ValueError("must be an integer or ${expression}")
    return _expression(value)


ArgMap = dict[str, Annotated[Any, BeforeValidator(_argument)]]
EnvMap = dict[str, Annotated[Any, BeforeValidator(_variable)]]
Count = Annotated[Any, BeforeValidator(_count)]
Duration = Annotated[Any, BeforeValidator(_duration)]


class ImageForm(Frozen):
    """The container image, or the package that stands for one."""

    ref: str | None = None
    digest: str | None = Field(default=None, pattern=r"^sha256:[0-9a-f]{64}$")


class ModelForm(Frozen):
    """Which checkpoint, and where its files are."""

    id: str | None = None
    revision: str | None = None
    location: str | None = Field(default=None, pattern=r"^(none|python-package:[A-Za-z0-9_.-]+|path:/.+)$")
    files: tuple[ModelFile, ...] | None = None


class RoleForm(Frozen):
    """What one role adds. replicas, gpus (devices of a replica): checked against the point, which decides."""

    replicas: Count = None
    gpus: Count = None
    args: ArgMap | None = None
    env: EnvMap | None = None


class RolesForm(Frozen):
    """Arguments and environment per role; `all` lies under each of the others."""

    all: RoleForm | None = None
    agg: RoleForm | None = None
    prefill: RoleForm | None = None
    decode: RoleForm | None = None


class SpecForm(Frozen):
    """Speculative decoding: the method, tokens drafted in a row, and the model that drafts (`self`: the served one).

    acceptance: unset, golden for agentic throughput and real for all else; evals are always real. drafter,
    draft_sample, rejection, thinking: which committed curve, where several are of one model and method. options:
    keys that vLLM's speculative config has beyond these.
    """

    method: SpecMethod | None = None
    steps: Count = None
    draft_tokens: Count = None
    topk: Count = None
    draft_model: str | None = None
    acceptance: AcceptanceMode | None = None
    drafter: str | None = None
    draft_sample: str | None = None
    rejection: str | None = None
    thinking: Literal["on", "off"] | None = None
    options: dict[str, str | int | float | bool | None] | None = None


class OffloadForm(Frozen):
    """KV blocks in host memory. tier, backend: checked against the point; ratio: host pool to device pool."""

    tier: Literal["none", "dram"] | None = None
    backend: str | None = None
    ratio: Annotated[Any, BeforeValidator(_argument)] = None


class RouterForm(Frozen):
    """What stands before several workers."""

    kind: str | None = None
    args: ArgMap | None = None
    env: EnvMap | None = None


class TopologyForm(Frozen):
    """How roles are put together; how they are spread is the point's."""

    router: RouterForm | None = None


class ReadyForm(Frozen):
    """When a role is ready: GET path answers 200 within the timeout."""

    path: str | None = Field(default=None, pattern=r"^/")
    timeout: Duration = None


class PatchForm(Frozen):
    """What a layer or a rule can set.

    context: tokens that a request may have; graph_batch: the largest batch of captured graphs; the engine renders both.
    flags: flags that the image's engine has and the checked-in table lacks, with their kinds.
    """

    engine: str | None = None
    python: str | None = None
    image: ImageForm | None = None
    env: EnvMap | None = None
    model: ModelForm | None = None
    served_model: str | None = None
    context: Count = None
    graph_batch: Count = None
    flags: dict[str, Literal["int", "float", "text", "switch"] | None] | None = None
    topology: TopologyForm | None = None
    roles: RolesForm | None = None
    spec: SpecForm | None = None
    kv_offload: OffloadForm | None = None
    patches: tuple[Patch, ...] | None = None
    ready: ReadyForm | None = None


class RuleForm(PatchForm):
    """A patch for the points that fulfil `when`."""

    when: dict[str, Any] = Field(min_length=1)


class RecipeForm(PatchForm):
    """A recipe file."""

    schema_version: Literal[1] = Field(alias="schema")
    extends: str | None = None
    keys: tuple[str, ...] = ()
    rules: tuple[RuleForm, ...] = Field(default=(), max_length=MAX_RULES)


@dataclass(frozen=True)
class Rule:
    """A patch that is laid over the base at the points where all its conditions hold."""

    when: tuple[Condition, ...]
    leaves: tuple[Leaf, ...]
    place: str


@dataclass(frozen=True)
class Recipe:
    """One recipe file, checked. `extends_place` and `keys` are as written."""

    name: str
    file: str
    extends: str | None
    extends_place: str
    keys: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    rules: tuple[Rule, ...]


def read_recipe(document: YamlMap, name: str) -> Recipe:
    """Check the YAML of a recipe. Raises ConfigError with file:line, what is allowed and what was perhaps meant."""
    what = f"recipe {name}"
    form = validate(RecipeForm, document, what)
    return Recipe(
        name=name,
        file=document.file,
        extends=form.extends,
        extends_place=f"{document.file}:{document.lines.get('extends', 0)}",
        keys=form.keys,
        leaves=_read_leaves(document),
        rules=tuple(_read_rule(rule) for rule in document.get("rules") or ()),
    )


def _read_leaves(node: YamlMap) -> tuple[Leaf, ...]:
    """Return the leaves of a layer or a rule. Raises ConfigError for what no process can be given."""
    leaves = tuple(flatten(node, _NOT_LEAVES))
    for leaf in leaves:
        name = leaf.path[-1]
        if leaf.path[-2:-1] == ("env",) and not re.fullmatch(ENV_NAME, name):
            raise ConfigError(
                f"{leaf.place}: {name!r} can't be the name of an environment variable",
                allowed="letters, digits and _, not beginning with a digit",
            )
        for text in (name, *(leaf.value if isinstance(leaf.value, list) else [leaf.value])):
            fault = fault_of_word(text) if isinstance(text, str) else None
            if fault:
                raise ConfigError(
                    f"{leaf.place}: {leaf.name!r} {fault}: {text!r}", fix="take it out; no program can be given that"
                )
    return leaves


def _read_rule(rule: YamlMap) -> Rule:
    leaves = _read_leaves(rule)
    place = f"{rule.file}:{rule.line}"
    if not leaves:
        raise ConfigError(f"{place}: this rule changes nothing", allowed=", ".join(PatchForm.model_fields))
    return Rule(read_conditions(rule["when"]), leaves, place)
