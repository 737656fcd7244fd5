"""One cell of the matrix: what is served, where, how it is spread over devices, and what load it gets."""

from typing import Annotated, Literal

from pydantic import Field

from prony.base.model import Frozen

SpecDecoding = Literal["none", "mtp", "draft_model"]
RoleName = Literal["agg", "prefill", "decode"]


class Setting(Frozen):
    """One NAME=value of a role's additional settings."""

    name: str
    value: str


class RolePool(Frozen):
    """Equal replicas of one role and how each is spread over devices.

    One replica uses tp * pp * pcp * dp devices (EP and DCP live inside TP and add none).
    """

    role: RoleName
    replicas: int = 1
    tp: int = 1
    pp: int = 1
    dcp: int = 1
    pcp: int = 1
    dp: int = 1
    ep: int | None = None
    dp_attention: bool | None = None
    hardware: str | None = None
    nodes: int | None = None
    settings: tuple[Setting, ...] = ()

    @property
    def gpus(self) -> int:
        """Devices of all replicas."""
        return self.replicas * self.tp * self.pp * self.pcp * self.dp

    @property
    def label(self) -> str:
        """The pool in short: 2x prefill TP4 EP4 DPA."""
        parts = [f"{self.replicas}x" if self.replicas > 1 else "", "" if self.role == "agg" else self.role]
        sizes = (("TP", self.tp, 0), ("PP", self.pp, 1), ("DCP", self.dcp, 1), ("PCP", self.pcp, 1), ("DP", self.dp, 1))
        parts += [f"{name}{size}" for name, size, silent in sizes if size != silent]
        parts += [f"EP{self.ep}" if (self.ep or 1) > 1 else "", "DPA" if self.dp_attention else ""]
        return " ".join(part for part in parts if part)


class Topology(Frozen):
    """A tuple of role pools: one `agg` pool, or `prefill` and `decode`."""

    pools: tuple[RolePool, ...]

    @property
    def gpus(self) -> int:
        """Devices of all pools."""
        return sum(pool.gpus for pool in self.pools)

    @property
    def label(self) -> str:
        """The topology in short: prefill TP4 + decode TP8."""
        return " + ".join(pool.label for pool in self.pools)


def split_roles(prefill: RolePool, decode: RolePool) -> tuple[Topology, RolePool | None]:
    """Return the topology of two roles, and the decode pool where it has no replicas and is not what `idle` gives.

    Without decode replicas the prefill pool serves whole requests: it is an aggregated one.
    """
    if decode.replicas:
        return Topology(pools=(prefill, decode)), None
    aggregated = prefill.model_copy(update={"role": "agg"})
    return Topology(pools=(aggregated,)), None if decode == idle(aggregated) else decode


def idle(pool: RolePool) -> RolePool:
    """Return the decode pool that rows put beside an aggregated one: no replicas, equal spread, no settings."""
    return pool.model_copy(update={"role": "decode", "replicas": 0, "nodes": None, "settings": ()})


class FixedSeqLen(Frozen):
    """Requests of fixed input and output lengths, in tokens."""

    kind: Literal["fixed-seq-len"] = "fixed-seq-len"
    isl: int
    osl: int


class AgenticCoding(Frozen):
    """Replayed agentic sessions for a duration."""

    kind: Literal["agentic-coding"] = "agentic-coding"
    duration_s: int = 3600


Workload = Annotated[FixedSeqLen | AgenticCoding, Field(discriminator="kind")]


class Router(Frozen):
    """The router in front of several workers."""

    name: str
    version: str


class KvOffload(Frozen):
    """Where KV blocks go when device memory is full."""

    mode: Literal["none", "dram"] = "none"
    backend: str | None = None
    backend_version: str | None = None


class Point(Frozen):
    """One cell of the matrix, with all that a row of the reference carries.

    cpu_dram_gb: host memory for KV offload, of a node. evaluate: an eval runs at this point too; eval_only: no load is
    measured. idle_decode: a decode pool of no replicas that a row declares unlike the pool that serves (see `idle`).
    """

    config_key: str
    image: str
    model: str
    model_prefix: str
    precision: str
    framework: str
    runner: str
    multinode: bool = False
    disagg: bool = False
    topology: Topology
    workload: Workload
    concurrency: int
    spec_decoding: SpecDecoding = "none"
    router: Router | None = None
    kv_transfer: str | None = None
    kv_offload: KvOffload = KvOffload()
    cpu_dram_gb: int = 0
    evaluate: bool = False
    eval_only: bool = False
    idle_decode: RolePool | None = None

    @property
    def label(self) -> str:
        """The point in words, for terminals and logs."""
        mtp = "" if self.spec_decoding == "none" else f" {self.spec_decoding}"
        return f"{self.config_key}{mtp} conc={self.concurrency}"
