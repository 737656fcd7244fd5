"""Search-space entries of a master config: how replicas are spread, and at which concurrencies."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, Strict, model_validator

from prony.base.model import Frozen
from prony.spec.point import KvOffload, RoleName, RolePool, Router, Setting, SpecDecoding, Topology, split_roles

MAX_CONCURRENCY = 65_536
MAX_TOKENS = 10_000_000
MAX_DEVICES = 100_000


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a whole number, not true or false")
    return value


Text = Annotated[str, Field(min_length=1)]
# The reference reads "8" as 8 here, and so do we; it also takes true, 0 and -1, and there we do not follow.
Size = Annotated[int, BeforeValidator(_no_bool), Field(gt=0, le=MAX_DEVICES)]
Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=0, le=MAX_DEVICES)]
Tokens = Annotated[int, BeforeValidator(_no_bool), Field(gt=0, le=MAX_TOKENS)]
StrictSize = Annotated[int, Strict(), Field(gt=0, le=MAX_DEVICES)]
Users = Annotated[int, BeforeValidator(_no_bool), Field(le=MAX_CONCURRENCY)]


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class Dialect(Frozen):
    """Fields are written with hyphens; the underscore form is accepted too, as in the reference."""

    model_config = ConfigDict(alias_generator=_kebab)


class RouterEntry(Dialect):
    """A router by name and version."""

    name: Text
    version: Text

    @model_validator(mode="after")
    def _no_image(self) -> Self:
        if self.version.startswith("image:"):
            raise ValueError("router version must not start with 'image:'")
        return self

    def router(self) -> Router:
        return Router(name=self.name, version=self.version)


class Concurrency(Dialect):
    """Exactly one of `conc-list` and `conc-start` + `conc-end`."""

    conc_list: tuple[Users, ...] | None = None
    conc_start: Users | None = None
    conc_end: Users | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        ranged = self.conc_start is not None and self.conc_end is not None
        if self.conc_list is not None and ranged:
            raise ValueError("cannot specify both 'conc-list' list and 'conc-start'/'conc-end'; keep one")
        if self.conc_list is None and not ranged:
            raise ValueError("must specify either 'conc-list' list or both 'conc-start' and 'conc-end'")
        values = self.conc_list if self.conc_list is not None else (self.conc_start or 0, self.conc_end or 0)
        if not values or min(values) <= 0:
            raise ValueError("concurrencies must be greater than 0")
        if ranged and (self.conc_start or 0) > (self.conc_end or 0):
            raise ValueError(f"'conc-start' ({self.conc_start}) must be <= 'conc-end' ({self.conc_end})")
        return self

    def concurrencies(self, step: int = 2) -> tuple[int, ...]:
        """Return the list as written, or the range start, start * step, … with `end` always last."""
        if self.conc_list is not None:
            return self.conc_list
        assert self.conc_start is not None and self.conc_end is not None
        values = []
        value = self.conc_start
        while value < self.conc_end:
            values.append(value)
            value *= step
        return (*values, self.conc_end)


class _Spread(Dialect):
    """How one replica is spread over devices."""

    tp: Size
    pp: StrictSize = 1
    dcp_size: StrictSize = 1
    pcp_size: StrictSize = 1

    @model_validator(mode="after")
    def _dcp_divides_tp(self) -> Self:
        if self.tp % self.dcp_size:
            raise ValueError(f"'tp' ({self.tp}) must be divisible by 'dcp-size' ({self.dcp_size})")
        return self


class Worker(_Spread):
    """The replicas of one role in a multi-node entry."""

    num_worker: Count
    ep: Size
    dp_attn: bool
    hardware: Text | None = None
    additional_settings: tuple[str, ...] = ()

    def pool(self, role: RoleName) -> RolePool:
        return RolePool(
            role=role, replicas=self.num_worker, tp=self.tp, pp=self.pp, dcp=self.dcp_size, pcp=self.pcp_size,
            ep=self.ep, dp_attention=self.dp_attn, hardware=self.hardware,
            settings=tuple(_setting(text) for text in self.additional_settings),
        )  # fmt: skip


def _setting(text: str) -> Setting:
    name, _, value = text.partition("=")
    return Setting(name=name, value=value)


class SingleFixedEntry(Concurrency, _Spread):
    """A search-space entry of a fixed-length scenario on one node."""

    ep: Size | None = None
    dp_attn: bool | None = None
    spec_decoding: SpecDecoding = "none"
    router: RouterEntry | None = None

    def topology(self) -> Topology:
        return _agg(self, self.ep, self.dp_attn)


def _agg(spread: _Spread, ep: int | None, dp_attn: bool | None) -> Topology:
    """Return one pool; what is left out means what rows say for it: EP 1, no data-parallel attention."""
    pool = RolePool(
        role="agg", tp=spread.tp, pp=spread.pp, dcp=spread.dcp_size, pcp=spread.pcp_size,
        ep=ep or 1, dp_attention=bool(dp_attn),
    )  # fmt: skip
    return Topology(pools=(pool,))


class _Workers(Dialect):
    """The workers of one entry: `prefill` and `decode`, or one aggregated `worker` and its `num-nodes`.

    Decode workers of number 0 are the older form of the second.
    """

    prefill: Worker | None = None
    decode: Worker | None = None
    worker: Worker | None = None
    num_nodes: StrictSize | None = None

    @model_validator(mode="after")
    def _one_of_two_forms(self) -> Self:
        split = (self.prefill, self.decode)
        aggregated = (self.worker, self.num_nodes)
        whole = [form for form in (split, aggregated) if None not in form]
        parts = [form for form in (split, aggregated) if any(part is not None for part in form)]
        if len(whole) != 1 or whole != parts:
            raise ValueError("needs either 'prefill' and 'decode', or 'worker' and 'num-nodes'")
        if self.prefill and self.decode and (self.prefill.hardware is None) != (self.decode.hardware is None):
            raise ValueError("'hardware' must be on both prefill and decode or on neither")
        return self

    def topology(self) -> Topology:
        return self._pools()[0]

    def idle_decode(self) -> RolePool | None:
        return self._pools()[1]

    def _pools(self) -> tuple[Topology, RolePool | None]:
        if self.worker is not None:
            pool = self.worker.pool("agg")
            return Topology(pools=(pool.model_copy(update={"nodes": self.num_nodes}),)), None
        assert self.prefill is not None and self.decode is not None
        return split_roles(self.prefill.pool("prefill"), self.decode.pool("decode"))


class MultiFixedEntry(Concurrency, _Workers):
    """A search-space entry of a fixed-length scenario on several nodes."""

    spec_decoding: SpecDecoding = "none"
    router: RouterEntry | None = None
    kv_p2p_transfer: Text | None = None


class OffloadBackend(Dialect):
    """The library that moves KV blocks."""

    name: Text
    version: Text | None = None


class _Offload(Dialect):
    """KV offload of an agentic entry."""

    kv_offloading: Literal["none", "dram"] | None = None
    kv_offload_backend: OffloadBackend | None = None

    @model_validator(mode="after")
    def _backend_with_mode(self) -> Self:
        if self.kv_offload_backend is not None and self.kv_offloading in (None, "none"):
            raise ValueError("'kv-offload-backend' needs 'kv-offloading: dram'")
        if self.kv_offloading == "dram" and self.kv_offload_backend is None:
            raise ValueError("'kv-offloading: dram' needs 'kv-offload-backend'")
        return self

    def offload(self) -> KvOffload:
        backend = self.kv_offload_backend
        return KvOffload(
            mode=self.kv_offloading or "none",
            backend=backend.name if backend else None,
            backend_version=backend.version if backend else None,
        )


class SingleAgenticEntry(Concurrency, _Offload, _Spread):
    """A search-space entry of an agentic scenario on one node."""

    kv_offloading: Literal["none", "dram"]
    ep: Size | None = None
    dp_attn: bool | None = None
    spec_decoding: SpecDecoding = "none"
    router: RouterEntry | None = None

    def topology(self) -> Topology:
        return _agg(self, self.ep, self.dp_attn)


class MultiAgenticEntry(Concurrency, _Offload, _Workers):
    """A search-space entry of an agentic scenario on several nodes."""

    spec_decoding: SpecDecoding = "none"
    router: RouterEntry | None = None
    kv_p2p_transfer: Text | None = None
