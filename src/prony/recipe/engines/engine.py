"""What Prony knows of an engine: its flags, what it can do, and how it is called."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from prony.recipe.engines.flags import Flag
from prony.recipe.intent import Intent, RoleIntent
from prony.recipe.model import SpecMethod
from prony.spec.point import RoleName


@dataclass(frozen=True)
class Engine:
    """One engine. `render` returns the argv of a role; it is pure and raises ConfigError for what it can't do."""

    name: str
    flags: tuple[Flag, ...]
    render: Callable[[Intent, RoleIntent], tuple[str, ...]]
    roles: frozenset[RoleName]
    spec_methods: frozenset[SpecMethod]
    tokenizer: Literal["llamacpp", "vllm", "none"]
    simulated: bool = False
