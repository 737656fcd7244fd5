"""Which job runs first: a policy file of score adjustments, and the score of one job."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from prony.base.errors import ConfigError
from prony.base.model import Frozen
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml
from prony.spec.point import AgenticCoding, Point

PATCHWORK = "patchwork"
_STEP = Decimal("0.001")
MAX_SCORE = 1_000_000


def _exact(value: Any) -> Any:
    """Read a number as it is written: 0.1 is a tenth."""
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value


Score = Annotated[Decimal, BeforeValidator(_exact), Field(ge=-MAX_SCORE, le=MAX_SCORE)]
Scores = Annotated[dict[str, Score], Field(default_factory=dict)]
ZERO = Decimal(0)


class _Kebab(Frozen):
    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))


class Adjustments(_Kebab):
    """What is added for each fact that is true of a job. Order matters in framework_prefix: the first match counts."""

    event: Scores
    multi_node: Score = ZERO
    agentic: Score = ZERO
    eval_only: Score = ZERO
    precision: Scores
    spec_decoding: Scores
    framework_prefix: Scores
    model_prefix: Scores


class SkipLabel(_Kebab):
    """The label that asks to be run ahead of the queue."""

    name: str


class Bonus(_Kebab):
    """Labels that add to the score."""

    names: tuple[str, ...]
    adjustment: Score


class Patchwork(_Kebab):
    """Labels that replace the score, unless another one waives them."""

    names: tuple[str, ...]
    score: Score
    waived_by: tuple[str, ...] = ()


class Labels(_Kebab):
    """What labels of a pull request do."""

    skip_queue: SkipLabel | None = None
    checklist_complete: Bonus | None = None
    patchwork: Patchwork | None = None


class Policy(_Kebab):
    """A priority policy, version 1. Higher scores run first."""

    version: Literal[1]
    base_score: Score
    adjustments: Adjustments = Adjustments()
    labels: Labels = Labels()

    def criteria(self) -> tuple[str, ...]:
        """Return the facts that `Context.criteria` may name."""
        groups = self.adjustments
        keyed = (groups.precision, groups.spec_decoding, groups.framework_prefix, groups.model_prefix)
        return ("multi-node", "agentic", "eval-only", *(name for group in keyed for name in group), PATCHWORK)


class Context(Frozen):
    """What is true of all jobs. criteria: facts that may count; None lets all count."""

    event: str = ""
    labels: frozenset[str] = frozenset()
    criteria: frozenset[str] | None = None


class Facts(Frozen):
    """What a score depends on in one job."""

    framework: str = ""
    precision: str = ""
    spec_decoding: str = ""
    model_prefix: str = ""
    multinode: bool = False
    agentic: bool = False
    eval_only: bool = False


def load_policy(path: Path) -> Policy:
    """Read a policy file. Raises ConfigError with file:line."""
    return read_policy(load_yaml(path))


def read_policy(document: YamlMap) -> Policy:
    """Validate a policy. Raises ConfigError with file:line."""
    return validate(Policy, document, "policy")


def facts_of_point(point: Point) -> Facts:
    """Return what a score depends on in a point."""
    return Facts(
        framework=point.framework,
        precision=point.precision,
        spec_decoding=point.spec_decoding,
        model_prefix=point.model_prefix,
        multinode=point.multinode,
        agentic=isinstance(point.workload, AgenticCoding),
        eval_only=point.eval_only,
    )


def check_criteria(policy: Policy, criteria: Iterable[str]) -> None:
    """Raise ConfigError for criteria that the policy does not know."""
    unknown = sorted(set(criteria) - set(policy.criteria()))
    if unknown:
        raise ConfigError(
            f"the priority policy has no criterion {', '.join(map(repr, unknown))}",
            allowed=", ".join(dict.fromkeys(policy.criteria())),
            fix="name facts of the policy file",
        )


def score(facts: Facts, policy: Policy, context: Context) -> Decimal:
    """Return the score, to three decimals, halves up: base + event + facts + finished checklist.

    Patchwork that nothing waives replaces it all. Raises ConfigError for unknown criteria.
    """
    check_criteria(policy, context.criteria or ())
    patchwork = policy.labels.patchwork
    if patchwork is not None and _is_patchwork(patchwork, context):
        return patchwork.score.quantize(_STEP, ROUND_HALF_UP)
    counted = (value for name, value in _adjustments(facts, policy.adjustments)
               if context.criteria is None or name in context.criteria)  # fmt: skip
    total = policy.base_score + policy.adjustments.event.get(context.event, ZERO) + sum(counted, ZERO)
    bonus = policy.labels.checklist_complete
    if bonus is not None and context.labels.intersection(bonus.names):
        total += bonus.adjustment
    return total.quantize(_STEP, ROUND_HALF_UP)


def _is_patchwork(patchwork: Patchwork, context: Context) -> bool:
    found = context.labels.intersection(patchwork.names) or PATCHWORK in (context.criteria or ())
    return bool(found) and not context.labels.intersection(patchwork.waived_by)


def _adjustments(facts: Facts, table: Adjustments) -> Iterator[tuple[str, Decimal]]:
    """Yield the facts that are true of a job, by the name of their criterion, and what each adds."""
    if facts.multinode:
        yield "multi-node", table.multi_node
    if facts.agentic:
        yield "agentic", table.agentic
    if facts.eval_only:
        yield "eval-only", table.eval_only
    exact: tuple[tuple[str, Mapping[str, Decimal]], ...] = (
        (facts.precision, table.precision),
        (facts.spec_decoding, table.spec_decoding),
        (facts.model_prefix, table.model_prefix),
    )
    yield from ((value, group[value]) for value, group in exact if value in group)
    for prefix, value in table.framework_prefix.items():
        if facts.framework == prefix or facts.framework.startswith(prefix + "-"):
            yield prefix, value
            return
