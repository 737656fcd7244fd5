"""What an importer finds: how one launch starts each role, and what of it is typed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prony.spec.point import KvOffload, Point, RolePool, SpecDecoding

Values = tuple[str, ...]
"""Words of a flag: none for a bare one."""


@dataclass(frozen=True)
class FoundRole:
    """One role: its flags without dashes, its environment, how it is spread."""

    pool: RolePool
    args: Mapping[str, Values]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """One launch: where it was found, what serves it, its roles, drafting and what goes with them.

    spec: leaves of a recipe's `spec`, None without drafting. router, router_args: what stands before the workers.
    notes: what was left out, and why.
    """

    name: str
    place: str
    engine: str
    image: str
    model: str
    roles: tuple[FoundRole, ...]
    spec: Mapping[str, Any] | None = None
    router: str | None = None
    router_args: Mapping[str, Values] = field(default_factory=dict)
    router_env: Mapping[str, str] = field(default_factory=dict)
    kv_transfer: str | None = None
    offload: KvOffload = field(default_factory=KvOffload)
    offload_ratio: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def spec_decoding(self) -> SpecDecoding:
        """The label that a master config gives it."""
        if self.spec is None:
            return "none"
        return "draft_model" if self.spec["method"] in ("draft_model", "ngram") else "mtp"


@dataclass(frozen=True)
class Import:
    """What came of an import: a recipe's text, the point that it was verified at, and what does not agree."""

    name: str
    text: str
    point: Point | None
    notes: tuple[str, ...]
    faults: tuple[str, ...]
