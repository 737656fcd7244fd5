"""What an engine is asked for: typed where it crosses engines, raw arguments for the rest. All of it resolved."""

from dataclasses import dataclass

from prony.recipe.deployment import ModelRef
from prony.recipe.engines.flags import Arg
from prony.recipe.model import SpecMethod
from prony.spec.point import RolePool


@dataclass(frozen=True)
class SpecIntent:
    """Speculative decoding: `steps` tokens drafted per step by `draft_model` (`self`: the served model)."""

    method: SpecMethod
    steps: int | None
    draft_model: str | None
    place: str


@dataclass(frozen=True)
class RoleIntent:
    """One role: how it is spread, and its raw arguments."""

    pool: RolePool
    args: tuple[Arg, ...]


@dataclass(frozen=True)
class Intent:
    """All roles of one deployment. `place` is where the engine is chosen, for errors."""

    model: ModelRef
    served_model: str
    spec: SpecIntent | None
    place: str
