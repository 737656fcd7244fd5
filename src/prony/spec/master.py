"""Master configs: the catalogue of what may be measured, in the reference's YAML dialect."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from prony.base.errors import ConfigError
from prony.base.finding import Where
from prony.base.model import Frozen
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml
from prony.spec.entries import (
    Dialect,
    MultiAgenticEntry,
    MultiFixedEntry,
    RouterEntry,
    SingleAgenticEntry,
    SingleFixedEntry,
    Text,
    Tokens,
)


class _FixedItem(Dialect):
    isl: Tokens
    osl: Tokens


class SingleFixedItem(_FixedItem):
    """Fixed lengths and their search space, on one node."""

    search_space: tuple[SingleFixedEntry, ...]


class MultiFixedItem(_FixedItem):
    """Fixed lengths and their search space, on several nodes."""

    search_space: tuple[MultiFixedEntry, ...]


class _AgenticItem(Dialect):
    dram_utilization: Annotated[float, Field(gt=0, le=1)] | None = None


class SingleAgenticItem(_AgenticItem):
    """An agentic scenario on one node."""

    search_space: tuple[SingleAgenticEntry, ...]


class MultiAgenticItem(_AgenticItem):
    """An agentic scenario on several nodes."""

    search_space: tuple[MultiAgenticEntry, ...]


class SingleScenarios(Dialect):
    """Scenarios of a single-node config."""

    fixed_seq_len: tuple[SingleFixedItem, ...] | None = None
    agentic_coding: tuple[SingleAgenticItem, ...] | None = None


class MultiScenarios(Dialect):
    """Scenarios of a multi-node config."""

    fixed_seq_len: tuple[MultiFixedItem, ...] | None = None
    agentic_coding: tuple[MultiAgenticItem, ...] | None = None


class _MasterEntry(Dialect):
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
        if self.disagg and any(isinstance(e, MultiFixedEntry | MultiAgenticEntry) and e.worker for e in entries):
            raise ValueError("'disagg: true' needs 'prefill' and 'decode'; an aggregated 'worker' is not disaggregated")
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
            raise ConfigError(
                f"{where} {key}: must be a mapping",
                allowed="image, model, model-prefix, precision, …",
                fix="write its fields",
            )
        keys.append(MasterKey(key=key, where=where, entry=_entry(key, value)))
    return tuple(keys)


def _entry(key: str, value: YamlMap) -> MasterEntry:
    multinode = value.get("multinode", False)
    if not isinstance(multinode, bool):
        line = value.lines["multinode"]
        raise ConfigError(
            f"{value.file}:{line} {key}: 'multinode' is {multinode!r}", allowed="true, false", fix="write true or false"
        )
    if multinode:
        return validate(MultiNode, value, key)
    return validate(SingleNode, value, key)
