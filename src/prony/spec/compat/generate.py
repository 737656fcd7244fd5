"""The reference's two generator commands as functions: full-sweep and test-config."""

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.base.errors import ConfigError
from prony.base.yamldoc import YamlMap, load_yaml
from prony.spec.compat.evals import EvalMode, mark_evals
from prony.spec.compat.expand import JsonRow, Limits, rows_of_key
from prony.spec.compat.normal import normal
from prony.spec.dram import DramBudget
from prony.spec.master import read_master
from prony.spec.runners import Runners, load_runners

NO_LIMITS = Limits()


@dataclass(frozen=True)
class Catalogue:
    """Validated master entries as written, by key in file order, and the runners."""

    entries: Mapping[str, YamlMap]
    runners: Runners


@dataclass(frozen=True)
class FullSweep:
    """What full-sweep selects; None selects all. node_filter: part of a node's name."""

    model_prefix: tuple[str, ...] | None = None
    precision: tuple[str, ...] | None = None
    framework: tuple[str, ...] | None = None
    runner_type: tuple[str, ...] | None = None
    single_node: bool = False
    multi_node: bool = False
    node_filter: str | None = None
    limits: Limits = NO_LIMITS
    evals: EvalMode = "default"


@dataclass(frozen=True)
class TestConfig:
    """What test-config selects: keys and globs, in order of first mention."""

    __test__ = False  # the reference's word; no test runner should take it for a test

    keys: tuple[str, ...]
    node_filter: str | None = None
    limits: Limits = NO_LIMITS
    evals: EvalMode = "default"


def load_catalogue(configs: Sequence[Path], runner_config: Path) -> Catalogue:
    """Read and validate master configs and runners. Raises ConfigError with file:line."""
    documents = [load_yaml(path) for path in configs]
    return make_catalogue(documents, load_runners(runner_config))


def make_catalogue(documents: Sequence[YamlMap], runners: Runners) -> Catalogue:
    """Validate master documents. Raises ConfigError with file:line, also for a key of two files."""
    entries: dict[str, YamlMap] = {}
    for document in documents:
        again = [key for key in document if key in entries]
        if again:
            raise ConfigError(
                f"{document.file}: keys that an earlier file has already: {', '.join(sorted(again))}",
                fix="name every file once, and every key in one file",
            )
        read_master(document)
        entries.update((key, normal(entry)) for key, entry in document.items())
    return Catalogue(entries, runners)


def full_sweep(catalogue: Catalogue, asked: FullSweep) -> list[JsonRow]:
    """Return the rows of `full-sweep`. Raises ConfigError."""
    labels = {label.name for label in catalogue.runners.labels}
    unknown = [name for name in asked.runner_type or () if name not in labels]
    if unknown:
        what = f"no runner label of this name: {', '.join(unknown)}"
        raise ConfigError(what, allowed=", ".join(sorted(labels)), fix="name a label of the runners file")
    chosen = {key: entry for key, entry in catalogue.entries.items() if _wanted(key, entry, asked)}
    return _generate(chosen, catalogue, asked.limits, asked.evals, lambda label: _nodes(catalogue, label, asked))


def _wanted(key: str, entry: Mapping[str, Any], asked: FullSweep) -> bool:
    """--model-prefix is compared with the start of the key, not with the field of that name."""
    if asked.model_prefix is not None and not key.startswith(asked.model_prefix):
        return False
    members = ((asked.precision, "precision"), (asked.framework, "framework"), (asked.runner_type, "runner"))
    if any(allowed is not None and entry[name] not in allowed for allowed, name in members):
        return False
    if asked.single_node == asked.multi_node:
        return True
    return bool(entry.get("multinode", False)) == asked.multi_node


def _nodes(catalogue: Catalogue, label: str, asked: FullSweep) -> list[str]:
    if asked.node_filter is None:
        return [label]
    return [node for node in _label_nodes(catalogue, label) if asked.node_filter in node]


def _label_nodes(catalogue: Catalogue, label: str) -> tuple[str, ...]:
    return next((item.nodes for item in catalogue.runners.labels if item.name == label), ())


def test_config(catalogue: Catalogue, asked: TestConfig) -> list[JsonRow]:
    """Return the rows of `test-config`. Raises ConfigError for keys and patterns that name nothing."""
    keys = matching_keys(list(catalogue.entries), asked.keys)
    chosen = {key: catalogue.entries[key] for key in keys}

    def nodes(label: str) -> list[str]:
        if asked.node_filter is None:
            return [label]
        named = (label, *_label_nodes(catalogue, label))
        return list(dict.fromkeys(name for name in named if asked.node_filter in name))

    return _generate(chosen, catalogue, asked.limits, asked.evals, nodes)


def matching_keys(known: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Return known keys that patterns (with * or ?) and plain names ask for, in order of first mention."""
    found: dict[str, None] = {}
    for pattern in asked:
        globbed = "*" in pattern or "?" in pattern
        hits = [key for key in known if (fnmatch.fnmatchcase(key, pattern) if globbed else key == pattern)]
        if not hits:
            what = f"wildcard '{pattern}' matches no key" if globbed else f"'{pattern}' is no key"
            raise ConfigError(
                f"{what} of the master configs", allowed=", ".join(sorted(known)), fix="name a key of the files"
            )
        found.update(dict.fromkeys(hits))
    return list(found)


def _generate(
    entries: Mapping[str, YamlMap],
    catalogue: Catalogue,
    limits: Limits,
    evals: EvalMode,
    nodes: Callable[[str], list[str]],
) -> list[JsonRow]:
    dram = DramBudget(catalogue.runners)

    def rows() -> Iterator[JsonRow]:
        for entry in entries.values():
            where = nodes(entry["runner"])
            if where:
                yield from rows_of_key(entry, where, limits, dram)

    return mark_evals(list(rows()), evals)
