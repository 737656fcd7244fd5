"""Master configs read as far as they can be: what is valid goes to the rules, every fault becomes a finding."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Severity, Where
from prony.base.validate import faults, line_at
from prony.base.yamldoc import YamlMap, parse_yaml
from prony.spec.master import MasterEntry, MasterKey, MultiNode, SingleNode, read_master
from prony.spec.matrix import SearchEntry
from prony.spec.runners import Runners, RunnersFile, read_runners


class LintFinding(Finding):
    """A finding about a config key (empty where it is about a file). Line numbers stand in `where` and `evidence` only,
    so that rule, key and message are the same wherever the same fault stands."""

    key: str = ""


@dataclass(frozen=True)
class Source:
    """The text of a file, and the name that findings give it."""

    name: str
    text: str


@dataclass(frozen=True)
class Search:
    """One search-space entry and its place; what its scenario item says: lengths (None for agentic) and DRAM share."""

    scenario: str
    isl: int | None
    osl: int | None
    dram_utilization: float | None
    entry: SearchEntry
    where: Where
    item_line: int


@dataclass(frozen=True)
class Key:
    """One valid key of a master config."""

    name: str
    where: Where
    entry: MasterEntry
    written: YamlMap
    searches: tuple[Search, ...]

    def at(self, *loc: str | int) -> Where:
        """Return the place of a field of this key, or of the deepest part of the path that is written."""
        line = line_at(self.written, loc) if loc[0] in self.written else self.where.line
        return Where(file=self.where.file, line=line)


@dataclass(frozen=True)
class Config:
    """What could be read of some master files and a runners file, and the findings about the rest.

    names: every key, valid or not. unreadable: masters that are no YAML, and a runners file with any fault.
    """

    keys: tuple[Key, ...]
    runners: Runners
    findings: tuple[LintFinding, ...] = ()
    names: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def master_keys(self) -> tuple[MasterKey, ...]:
        """The keys as the matrix takes them; of a key in two files, the first."""
        found: dict[str, MasterKey] = {}
        for key in self.keys:
            found.setdefault(key.name, MasterKey(key=key.name, where=key.where, entry=key.entry))
        return tuple(found.values())


def file_source(path: Path) -> Source:
    """Read a file. Raises ConfigError when it cannot be read as UTF-8 text."""
    try:
        return Source(str(path), path.read_bytes().decode("utf-8"))
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise ConfigError(f"{path}: {reason}", fix="check the path and permissions") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}", fix="save the file as UTF-8") from None


def read_config(masters: Sequence[Source], runners: Source) -> Config:
    """Read master files and runners; what is wrong with them becomes findings."""
    keys: list[Key] = []
    findings: list[LintFinding] = []
    names: list[str] = []
    unreadable: list[str] = []
    for source in masters:
        noted: list[ConfigError] = []
        try:
            document = parse_yaml(source.text, source.name, noted)
        except ConfigError as error:
            findings.append(finding_of(error, source.name, "yaml"))
            unreadable.append(source.name)
            continue
        findings += [finding_of(error, source.name, _yaml_rule(error)) for error in noted]
        names += document
        for name in document:
            key, found = _read_key(document, name)
            keys += [key] if key else []
            findings += found
    known, found = _read_runners(runners)
    unreadable += [] if known else [runners.name]
    findings += found
    return Config(tuple(keys), known or Runners(labels=()), tuple(findings), tuple(names), tuple(unreadable))


def _read_runners(source: Source) -> tuple[Runners | None, list[LintFinding]]:
    noted: list[ConfigError] = []
    try:
        document = parse_yaml(source.text, source.name, noted)
    except ConfigError as error:
        return None, [finding_of(error, source.name, "yaml")]
    findings = [finding_of(error, source.name, _yaml_rule(error)) for error in noted]
    findings += [finding_of(fault, source.name, "schema") for fault in faults(RunnersFile, document, "runners")]
    return (None if findings else read_runners(document)), findings


def _yaml_rule(error: ConfigError) -> str:
    return "yaml-duplicate-key" if "stands here twice" in error.message else "yaml"


def finding_of(error: ConfigError, file: str, rule: str, key: str = "", severity: Severity = "error") -> LintFinding:
    """Return an error whose message begins with `file:line` as a finding whose message has no line in it."""
    match = re.match(rf"{re.escape(file)}(?::(\d+))?:? ?(.*)", error.message, re.DOTALL)
    line, text = (int(match[1] or 0), match[2]) if match else (0, error.message)
    told = re.search(r" \(first at line \d+\)", text)
    return LintFinding(
        rule=rule, severity=severity, key=key, where=Where(file=file, line=line), allowed=error.allowed, fix=error.fix,
        message=text.replace(told[0], "") if told else text, evidence=told[0].strip(" ()") if told else "",
    )  # fmt: skip


def _read_key(document: YamlMap, name: str) -> tuple[Key | None, list[LintFinding]]:
    alone = YamlMap(document.file, document.line)
    alone[name], alone.lines[name] = document[name], document.lines[name]
    try:
        (read,) = read_master(alone)
    except ConfigError as error:
        return None, [finding_of(fault, document.file, "schema", name) for fault in _all_faults(alone, name, error)]
    written: YamlMap = document[name]
    return Key(name, read.where, read.entry, written, tuple(_searches(read.entry, written))), []


def _all_faults(alone: YamlMap, name: str, first: ConfigError) -> Sequence[ConfigError]:
    value = alone[name]
    multinode = value.get("multinode", False) if isinstance(value, YamlMap) else None
    if "*" in name or not isinstance(multinode, bool):
        return (first,)
    return faults(MultiNode if multinode else SingleNode, value, name) or (first,)


def _searches(entry: MasterEntry, written: YamlMap) -> Iterator[Search]:
    places = (("fixed-seq-len", entry.scenarios.fixed_seq_len), ("agentic-coding", entry.scenarios.agentic_coding))
    for scenario, found in places:
        items: Sequence[Any] = found or ()
        raw_items = _child(_child(written, "scenarios"), scenario) if items else ()
        for item, raw in zip(items, raw_items, strict=True):
            raw_searches = _child(raw, "search-space")
            for index, search in enumerate(item.search_space):
                yield Search(
                    scenario, getattr(item, "isl", None), getattr(item, "osl", None),
                    getattr(item, "dram_utilization", None), search,
                    Where(file=written.file, line=raw_searches.lines[index]), raw.line,
                )  # fmt: skip


def _child(value: YamlMap, name: str) -> Any:
    """Return a field as written: with hyphens, or with underscores."""
    return value[name] if name in value else value[name.replace("-", "_")]
