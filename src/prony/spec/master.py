"""Master configs: the catalogue of what may be measured, in the reference's YAML dialect."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, Strict, model_validator

from prony.base.errors import ConfigError
from prony.base.finding import Where
from prony.base.model import Frozen
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml
from prony.spec.point import KvOffload, RoleName, RolePool, Router, Setting, SpecDecoding, Topology

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


class _Dialect(Frozen):
    """Fields are written with hyphens; the underscore form is accepted too, as in the reference."""

    model_config = ConfigDict(alias_generator=_kebab)


class RouterEntry(_Dialect):
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


class Concurrency(_Dialect):
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


class _Spread(_Dialect):
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
    pool = RolePool(
        role="agg", tp=spread.tp, pp=spread.pp, dcp=spread.dcp_size, pcp=spread.pcp_size, ep=ep, dp_attention=dp_attn
    )
    return Topology(pools=(pool,))


class _Workers(_Dialect):
    """Prefill and decode workers of one entry."""

    prefill: Worker
    decode: Worker

    @model_validator(mode="after")
    def _hardware_both_or_neither(self) -> Self:
        if (self.prefill.hardware is None) != (self.decode.hardware is None):
            raise ValueError("'hardware' must be on both prefill and decode or on neither")
        return self

    def topology(self) -> Topology:
        pools = (self.prefill.pool("prefill"), self.decode.pool("decode"))
        return Topology(pools=tuple(pool for pool in pools if pool.replicas > 0))


class MultiFixedEntry(Concurrency, _Workers):
    """A search-space entry of a fixed-length scenario on several nodes."""

    spec_decoding: SpecDecoding = "none"
    router: RouterEntry | None = None
    kv_p2p_transfer: Text | None = None


class OffloadBackend(_Dialect):
    """The library that moves KV blocks."""

    name: Text
    version: Text | None = None


class _Offload(_Dialect):
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


class _FixedItem(_Dialect):
    isl: Tokens
    osl: Tokens


class SingleFixedItem(_FixedItem):
    """Fixed lengths and their search space, on one node."""

    search_space: tuple[SingleFixedEntry, ...]


class MultiFixedItem(_FixedItem):
    """Fixed lengths and their search space, on several nodes."""

    search_space: tuple[MultiFixedEntry, ...]


class _AgenticItem(_Dialect):
    dram_utilization: Annotated[float, Field(gt=0, le=1)] | None = None


class SingleAgenticItem(_AgenticItem):
    """An agentic scenario on one node."""

    search_space: tuple[SingleAgenticEntry, ...]


class MultiAgenticItem(_AgenticItem):
    """An agentic scenario on several nodes."""

    search_space: tuple[MultiAgenticEntry, ...]


class SingleScenarios(_Dialect):
    """Scenarios of a single-node config."""

    fixed_seq_len: tuple[SingleFixedItem, ...] | None = None
    agentic_coding: tuple[SingleAgenticItem, ...] | None = None


class MultiScenarios(_Dialect):
    """Scenarios of a multi-node config."""

    fixed_seq_len: tuple[MultiFixedItem, ...] | None = None
    agentic_coding: tuple[MultiAgenticItem, ...] | None = None


class _MasterEntry(_Dialect):
    image: Text
    model: Text
    model_prefix: Text
    precision: Text
    framework: Text
    runner: Text
    router: RouterEntry | None = None


class SingleNode(_MasterEntry):
    """One key of a master config that runs on one node."""

    multinode: Literal[False]
    disagg: Literal[False] = False
    scenarios: SingleScenarios

    @model_validator(mode="after")
    def _rules(self) -> Self:
        _check_entry(self)
        return self


class MultiNode(_MasterEntry):
    """One key of a master config that runs on several nodes."""

    multinode: Literal[True]
    disagg: bool = False
    kv_p2p_transfer: Text | None = None
    scenarios: MultiScenarios

    @model_validator(mode="after")
    def _rules(self) -> Self:
        _check_entry(self)
        entries = [e for item in _items(self) for e in item.search_space]
        inner = [isinstance(e, MultiFixedEntry | MultiAgenticEntry) and e.kv_p2p_transfer is not None for e in entries]
        if self.kv_p2p_transfer is not None and any(inner):
            raise ValueError("'kv-p2p-transfer' stands at the top and in a search-space entry; keep one")
        if self.disagg and self.kv_p2p_transfer is None and not all(inner):
            raise ValueError("'disagg: true' needs 'kv-p2p-transfer' at the top or in every search-space entry")
        return self


MasterEntry = SingleNode | MultiNode
ScenarioItem = SingleFixedItem | MultiFixedItem | SingleAgenticItem | MultiAgenticItem


def _items(entry: MasterEntry) -> tuple[ScenarioItem, ...]:
    return (*(entry.scenarios.fixed_seq_len or ()), *(entry.scenarios.agentic_coding or ()))


def _check_entry(entry: MasterEntry) -> None:
    agentic = entry.scenarios.agentic_coding or ()
    if not _items(entry):
        raise ValueError("'scenarios' needs at least one of 'fixed-seq-len' and 'agentic-coding'")
    if agentic and not entry.runner.startswith("cluster:"):
        raise ValueError(f"agentic-coding needs a runner that starts with 'cluster:', not '{entry.runner}'")
    if entry.router is not None and any(e.router for item in _items(entry) for e in item.search_space):
        raise ValueError("'router' stands at the top and in a search-space entry; keep one")
    for item in agentic:
        if item.dram_utilization is None and any(e.kv_offloading == "dram" for e in item.search_space):
            raise ValueError("'dram-utilization' is required where an entry has 'kv-offloading: dram'")


class MasterKey(Frozen):
    """One key of a master config and where it stands."""

    key: str
    where: Where
    entry: Annotated[SingleNode | MultiNode, Field(discriminator="multinode")]


class MasterConfig(Frozen):
    """All keys of the master files, in file order."""

    keys: tuple[MasterKey, ...]


def load_master(paths: Sequence[Path]) -> MasterConfig:
    """Read master configs. Raises ConfigError with file:line for the first fault."""
    found: dict[str, MasterKey] = {}
    for path in paths:
        for master_key in read_master(load_yaml(path)):
            earlier = found.get(master_key.key)
            if earlier is not None:
                raise ConfigError(
                    f"{master_key.where}: key '{master_key.key}' stands already at {earlier.where}",
                    fix="rename or remove one of the two",
                )
            found[master_key.key] = master_key
    return MasterConfig(keys=tuple(found.values()))


def read_master(document: YamlMap) -> tuple[MasterKey, ...]:
    """Validate the entries of one master document. Raises ConfigError with file:line."""
    keys = []
    for key, value in document.items():
        where = Where(file=document.file, line=document.lines[key])
        if "*" in key:
            raise ConfigError(f"{where}: key '{key}' contains '*'", fix="wildcards belong into selections, not names")
        if not isinstance(value, YamlMap):
            raise ConfigError(f"{where} {key}: must be a mapping", allowed="image, model, model-prefix, precision, …")
        keys.append(MasterKey(key=key, where=where, entry=_entry(key, value)))
    return tuple(keys)


def _entry(key: str, value: YamlMap) -> MasterEntry:
    multinode = value.get("multinode", False)
    if not isinstance(multinode, bool):
        line = value.lines["multinode"]
        raise ConfigError(f"{value.file}:{line} {key}: 'multinode' is {multinode!r}", allowed="true, false")
    if multinode:
        return validate(MultiNode, value, key)
    return validate(SingleNode, value, key)
