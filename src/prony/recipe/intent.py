"""What an engine is asked for: typed where it crosses engines, raw arguments for the rest. All of it resolved."""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.recipe.deployment import EnvVar, ModelRef, RoleFile, SpecDecode
from prony.recipe.engines.flags import Arg
from prony.spec.point import RolePool


@dataclass(frozen=True)
class OffloadIntent:
    """KV blocks in host memory. backend: as labelled; dram_gb: of one node, 10^9 bytes; ratio: to the device's pool."""

    backend: str
    dram_gb: int
    ratio: str | None
    place: str


@dataclass(frozen=True)
class RouterIntent:
    """What stands before several workers, and its own arguments. kind: a name that the engine knows."""

    kind: str
    args: tuple[Arg, ...]
    place: str


@dataclass(frozen=True)
class RoleIntent:
    """One role: how it is spread, and its raw arguments."""

    pool: RolePool
    args: tuple[Arg, ...]


@dataclass(frozen=True)
class Intent:
    """All roles of one deployment. `place` is where the engine is chosen, `spec_place` where drafting is, for errors.

    context: tokens that a request may have, prompt and answer. graph_batch: the largest batch of captured graphs.
    gpus_per_node: devices that share a node's host memory.
    """

    image: str
    model: ModelRef
    served_model: str
    pools: tuple[RolePool, ...]
    concurrency: int
    place: str
    spec: SpecDecode | None = None
    spec_place: str = ""
    offload: OffloadIntent | None = None
    kv_transfer: str | None = None
    router: RouterIntent | None = None
    context: int | None = None
    graph_batch: int | None = None

    @property
    def disagg(self) -> bool:
        """Prefill and decode are apart."""
        return any(pool.role == "prefill" for pool in self.pools)


@dataclass(frozen=True)
class Rendered:
    """How one role is started. env: what the engine adds; the recipe may not set the same names."""

    argv: tuple[str, ...]
    env: tuple[EnvVar, ...] = ()
    ports: tuple[str, ...] = ("http",)
    files: tuple[RoleFile, ...] = ()


def variables(**values: str) -> tuple[EnvVar, ...]:
    """Return environment variables in the order of their names."""
    return tuple(EnvVar(name=name, value=value) for name, value in sorted(values.items()))


def workers(pools: Sequence[RolePool], role: str) -> tuple[str, ...]:
    """Return the names of a role's processes, as placeholders know them: `{url:decode-0}`."""
    return tuple(f"{pool.role}-{number}" for pool in pools if pool.role == role for number in range(pool.replicas))
