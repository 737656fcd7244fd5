"""What Prony knows of an engine: its flags, what it can do, how it is called, and what it tells of itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from prony.recipe.deployment import SpecMethod
from prony.recipe.engines.flags import Flag
from prony.recipe.engines.telling import SILENT, Telling
from prony.recipe.intent import Intent, Rendered, RoleIntent
from prony.spec.point import RoleName

Render = Callable[[Intent, RoleIntent], Rendered]
FlagsOf = Callable[[str], tuple[Flag, ...]]
"""Flags by the image that holds the engine."""


@dataclass(frozen=True)
class Engine:
    """One engine. `render` says how a role is started; it is pure and raises ConfigError for what it can't do.

    routers: how what stands before several workers is started, by kind; the role of its intent is the first pool.
    flags: what the release in an image takes; router_flags: what a router takes. always_routed: its workers speak to
    their router alone. env_prefixes: how variables begin that only this engine reads; env: those that the release in an
    image reads, none where nothing is known of them. golden: it can simulate acceptance. spec_options:
    its drafting takes keys of its own.
    """

    name: str
    flags: FlagsOf
    render: Render
    roles: frozenset[RoleName]
    spec_methods: frozenset[SpecMethod]
    tokenizer: Literal["llamacpp", "vllm", "none"]
    simulated: bool = False
    golden: bool = False
    spec_options: bool = False
    offload_backends: frozenset[str] = frozenset()
    kv_transfers: frozenset[str] = frozenset()
    routers: dict[str, Render] = field(default_factory=dict)
    router_flags: dict[str, Callable[[], tuple[Flag, ...]]] = field(default_factory=dict)
    env_prefixes: tuple[str, ...] = ()
    env: Callable[[str], frozenset[str]] = lambda _image: frozenset()
    always_routed: bool = False
    probe: str = "/health"
    telling: Telling = SILENT
