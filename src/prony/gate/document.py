"""Master configs read as far as they can be: what is valid goes to the rules, every fault becomes a finding."""

import re
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Severity, Where
from prony.base.validate import faults, line_at
from prony.base.yamldoc import YamlMap, compose, parse_yaml
from prony.spec.master import MasterEntry, MasterKey, MultiNode, SingleNode, read_master
from prony.spec.matrix import SearchEntry
from prony.spec.runners import Runners, RunnersFile, read_runners

CONCURRENCY = ("conc-list", "conc-start", "conc-end")
SearchPath = tuple[str, int, int]


class LintFinding(Finding):
    """A finding about a config key (empty where it is about a file). Line numbers stand in `where` and `evidence` only,
    so that the words are the same wherever the same fault stands."""

    key: str = ""


@dataclass(frozen=True, eq=False)
class Place:
    """An entry as written, and the search-space entry in it: scenario, index of its item, its own index; or ()."""

    written: YamlMap
    path: SearchPath | tuple[()] = ()


@dataclass(frozen=True, eq=False)
class Found:
    """A finding and what it is about, apart from its words; see prony.gate.rule.Hit and Rule for the fields."""

    finding: LintFinding
    atoms: tuple[Hashable, ...]
    scope: Literal["search", "key", "all"] = "all"
    places: tuple[Place, ...] = ()
    reads: tuple[str, ...] = ()
    pairs: tuple[Hashable, ...] = ()


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
    path: SearchPath


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
    written: every key's name and mapping, valid or not. shadowed: keys that a later one of the same name replaces.
    """

    keys: tuple[Key, ...]
    runners: Runners
    found: tuple[Found, ...] = ()
    names: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    runners_known: bool = True
    written: tuple[tuple[str, YamlMap], ...] = ()
    shadowed: tuple[Key, ...] = ()

    @property
    def findings(self) -> tuple[LintFinding, ...]:
        """What reading alone found."""
        return tuple(item.finding for item in self.found)

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


@dataclass(frozen=True)
class _Master:
    """What one master file holds; written is None where it is no YAML."""

    keys: tuple[Key, ...]
    found: tuple[Found, ...]
    written: YamlMap | None
    shadowed: tuple[Key, ...] = ()


def read_config(masters: Sequence[Source], runners: Source) -> Config:
    """Read master files and runners; what is wrong with them becomes findings."""
    read = [_read_master(source) for source in masters]
    known, found = _read_runners(runners)
    unreadable = [source.name for source, master in zip(masters, read, strict=True) if master.written is None]
    entries = [pair for master in read for pair in (master.written or {}).items()]
    hidden = tuple(key for master in read for key in master.shadowed)
    return Config(
        keys=tuple(key for master in read for key in master.keys),
        runners=known or Runners(file=runners.name, labels=()),
        found=(*(item for master in read for item in master.found), *found),
        names=tuple(name for name, _ in entries),
        unreadable=(*unreadable, *(() if known else (runners.name,))),
        runners_known=known is not None,
        written=(
            *((name, value) for name, value in entries if isinstance(value, YamlMap)),
            *((key.name, key.written) for key in hidden),
        ),
        shadowed=hidden,
    )


# A base and its head mostly share all files but one. What is read is never changed.
@lru_cache(maxsize=4)
def _read_master(source: Source) -> _Master:
    noted: list[ConfigError] = []
    try:
        document = parse_yaml(source.text, source.name, noted)
    except ConfigError as error:
        return _Master((), (_of_file(finding_of(error, source.name, "yaml")),), None)
    found = [_of_file(finding_of(error, source.name, _yaml_rule(error)), document) for error in noted]
    keys: list[Key] = []
    for name in document:
        key, faulty = _read_key(document, name)
        keys += [key] if key else []
        found += [_of_entry(item, document[name]) for item in faulty]
    twice = any(item.finding.rule == "yaml-duplicate-key" for item in found)
    return _Master(tuple(keys), tuple(found), document, tuple(_shadowed(source)) if twice else ())


def _of_file(finding: LintFinding, document: YamlMap | None = None) -> Found:
    """Tell faults of the YAML apart by the key in which they stand."""
    lines = sorted((line, name) for name, line in document.lines.items()) if document is not None else []
    after = bisect_right(lines, finding.where.line, key=lambda pair: pair[0]) if finding.where else 0
    return Found(finding, ((lines[after - 1][1] if after else "", finding.message),))


def _of_entry(finding: LintFinding, written: Any) -> Found:
    """Tell schema faults of an entry apart by their words, without the name and the indices that other edits move."""
    text = finding.message.replace(finding.key, "")
    atom = re.sub(r"(?<=\.)\d+(?=[.' ])", "#", text)
    if not isinstance(written, YamlMap):
        return Found(finding, ((finding.key, atom),))
    at = re.search(r"'scenarios\.([\w-]+)\.(\d+)\.search[-_]space\.(\d+)", text)
    path: SearchPath | tuple[()] = (at[1].replace("_", "-"), int(at[2]), int(at[3])) if at else ()
    reads = tuple(word.replace("_", "-") for word in re.findall(r"[a-z][a-z0-9_-]*", text))
    reads += CONCURRENCY if "concurrenc" in text else ()
    return Found(finding, (atom,), "search" if at else "key", (Place(written, path),), reads)


def _shadowed(source: Source) -> Iterator[Key]:
    """Yield the valid keys that a later one of the same name replaces, as far as they can be read alone."""
    root = compose(source.text)
    pairs = list(root.value) if root is not None else []
    last = {name.value: index for index, (name, _) in enumerate(pairs)}
    lines = source.text.splitlines(keepends=True)
    for index, (name, value) in enumerate(pairs):
        if last[name.value] == index or name.start_mark.column:
            continue
        start, end = name.start_mark.line, pairs[index + 1][0].start_mark.line
        try:
            alone = parse_yaml("\n" * start + "".join(lines[start:end]), source.name, [])
        except ConfigError:
            continue
        key = _read_key(alone, name.value)[0] if name.value in alone and value.value else None
        if key:
            yield key


def _read_runners(source: Source) -> tuple[Runners | None, list[Found]]:
    noted: list[ConfigError] = []
    try:
        document = parse_yaml(source.text, source.name, noted)
    except ConfigError as error:
        return None, [_of_file(finding_of(error, source.name, "yaml"))]
    findings = [finding_of(error, source.name, _yaml_rule(error)) for error in noted]
    findings += [finding_of(fault, source.name, "schema") for fault in faults(RunnersFile, document, "runners")]
    return (None if findings else read_runners(document)), [_of_file(finding) for finding in findings]


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
        for at, (item, raw) in enumerate(zip(items, raw_items, strict=True)):
            raw_searches = _child(raw, "search-space")
            for index, search in enumerate(item.search_space):
                yield Search(
                    scenario, getattr(item, "isl", None), getattr(item, "osl", None),
                    getattr(item, "dram_utilization", None), search,
                    Where(file=written.file, line=raw_searches.lines[index]), raw.line, (scenario, at, index),
                )  # fmt: skip


def search_items(written: Any) -> dict[SearchPath, tuple[Any, Any]]:
    """Return the scenario item and the search-space entry at each path of an entry as written, valid or not."""
    found: dict[SearchPath, tuple[Any, Any]] = {}
    scenarios = written.get("scenarios")
    for scenario, items in scenarios.items() if isinstance(scenarios, dict) else ():
        for at, item in enumerate(items if isinstance(items, list) else ()):
            inner = item.get("search-space", item.get("search_space")) if isinstance(item, dict) else ()
            for index, search in enumerate(inner if isinstance(inner, list) else ()):
                found[scenario.replace("_", "-"), at, index] = item, search
    return found


def _child(value: YamlMap, name: str) -> Any:
    """Return a field as written: with hyphens, or with underscores."""
    return value[name] if name in value else value[name.replace("-", "_")]
