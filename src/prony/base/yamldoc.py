"""YAML read with libyaml, with the line of every key and item, and duplicate keys refused."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from prony.base.errors import ConfigError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE_TAG = "tag:yaml.org,2002:merge"
MAX_DEPTH = 64
# Aliases may make a document this many times larger than it is written, and no more.
MAX_GROWTH, SMALL_ENOUGH = 10, 100_000


class _Tagger(_Loader):  # type: ignore[misc]
    """Looks up the tag of a plain scalar once: a config holds the same few over and over, each worth a regex or two."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.known: dict[str, str] = {}

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: Any) -> str:
        if kind is not yaml.ScalarNode or value is None or not implicit[0]:
            return str(super().resolve(kind, value, implicit))
        if value not in self.known:
            self.known[value] = super().resolve(kind, value, implicit)
        return self.known[value]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Hold the garbage collector back: a tree only grows while it is read, and each look at it is in vain."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class YamlMap(dict[str, Any]):
    """A mapping that knows its file, its first line and the line of each key (from 1)."""

    __slots__ = ("file", "line", "lines")

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file = file
        self.line = line
        self.lines: dict[str, int] = {}


class YamlList(list[Any]):
    """A sequence that knows its first line and the line of each item (from 1)."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


def load_yaml(path: Path) -> YamlMap:
    """Read a YAML file that must hold one mapping. Raises ConfigError with file:line."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file", fix="check the path") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", fix="check the path and permissions") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}", fix="save the file as UTF-8") from None
    return parse_yaml(text, str(path))


@_without_collection()
def compose(text: str) -> yaml.Node | None:
    """Return the nodes of YAML text, None where it holds nothing. Raises yaml.YAMLError."""
    return yaml.compose(text, _Tagger)


@_without_collection()
def parse_yaml(text: str, file: str, faults: list[ConfigError] | None = None) -> YamlMap:
    """Read YAML text that must hold one mapping; `file` names it in errors. Raises ConfigError with file:line.

    With `faults`, duplicate keys (the last wins) and unreadable values (kept as text) are added to it instead.
    """
    try:
        node = compose(text)
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply", allowed=f"{MAX_DEPTH} levels", fix="flatten it") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{file}:{line}: not YAML: {error.problem}", fix="mend the syntax at that line") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: not YAML: {error}", fix="remove control characters; save as UTF-8") from None
    if node is None:
        raise ConfigError(f"{file}: is empty", allowed="a mapping", fix="write at least one key")
    value = _Builder(file, faults).build(node)
    if not isinstance(value, YamlMap):
        raise ConfigError(f"{file}:{node.start_mark.line + 1}: must contain a mapping", allowed="key: value lines")
    return value


class _Builder:
    """Turns composed nodes into plain values that keep their lines; an aliased node is built once."""

    def __init__(self, file: str, faults: list[ConfigError] | None = None) -> None:
        self.file = file
        self.faults = faults
        self.scalars = yaml.constructor.SafeConstructor()
        self.made: dict[tuple[str, str], Any] = {}
        self.open: set[int] = set()
        self.built: dict[int, tuple[Any, int]] = {}
        self.written = 0

    def build(self, node: yaml.Node) -> Any:
        return self.sized(node)[0]

    def sized(self, node: yaml.Node) -> tuple[Any, int]:
        """Return a node's value and how many nodes it holds with every alias written out."""
        if isinstance(node, yaml.ScalarNode):
            self.written += 1
            return self.scalar(node), 1
        known = self.built.get(id(node))
        if known is not None:
            return known
        self.enter(node)
        value, size = self.mapping(node) if isinstance(node, yaml.MappingNode) else self.sequence(node)
        self.open.discard(id(node))
        if size > MAX_GROWTH * self.written + SMALL_ENOUGH:
            raise self.fault(node, f"aliases make {size} values of {self.written}", "write out what is meant")
        self.built[id(node)] = value, size
        return value, size

    def enter(self, node: yaml.Node) -> None:
        self.written += 1
        if id(node) in self.open:
            raise self.fault(node, "an alias that contains itself", "write it out")
        if len(self.open) >= MAX_DEPTH:
            raise self.fault(node, f"nested more than {MAX_DEPTH} levels deep", "flatten it")
        self.open.add(id(node))

    def fault(self, node: yaml.Node, message: str, fix: str) -> ConfigError:
        return ConfigError(f"{self.file}:{node.start_mark.line + 1}: {message}", fix=fix)

    def refuse(self, error: ConfigError) -> None:
        """Raise a fault that reading can go on after, or note it where the caller asked for all."""
        if self.faults is None:
            raise error
        self.faults.append(error)

    def scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag == "tag:yaml.org,2002:str":
            return node.value
        known = (node.tag, node.value)
        try:
            if known not in self.made:
                self.made[known] = self.scalars.construct_object(node)
            return self.made[known]
        except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError):
            line = node.start_mark.line + 1
            fault = ConfigError(
                f"{self.file}:{line}: {node.value!r} cannot be read as {node.tag.rsplit(':', 1)[-1]}",
                fix="put it in quotes if text is meant",
            )
        self.refuse(fault)
        return node.value

    def sequence(self, node: yaml.Node) -> tuple[YamlList, int]:
        items = YamlList(node.start_mark.line + 1)
        total = 1
        for child in node.value:
            value, size = self.sized(child)
            items.append(value)
            items.lines.append(child.start_mark.line + 1)
            total += size
        return items, total

    def mapping(self, node: yaml.MappingNode) -> tuple[YamlMap, int]:
        result = YamlMap(self.file, node.start_mark.line + 1)
        merged: list[YamlMap] = []
        total = 1
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            value, size = self.sized(value_node)
            total += size
            if key_node.tag == _MERGE_TAG:
                merged.extend(self.merge_sources(value, line))
                continue
            key = self.key(key_node, line)
            if key in result:
                self.refuse(
                    ConfigError(
                        f"{self.file}:{line}: '{key}' stands here twice (first at line {result.lines[key]})",
                        fix="keep one of the two; the last would silently win",
                    )
                )
            result[key] = value
            result.lines[key] = line
        for source in merged:
            for key, value in source.items():
                if key not in result:
                    result[key] = value
                    result.lines[key] = source.lines[key]
        return result, total

    def key(self, node: yaml.Node, line: int) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise ConfigError(f"{self.file}:{line}: a key must be a plain word", fix="use a text key")
        value = self.scalar(node)
        return value if isinstance(value, str) else str(node.value)

    def merge_sources(self, value: Any, line: int) -> list[YamlMap]:
        sources = value if isinstance(value, YamlList) else [value]
        if not all(isinstance(source, YamlMap) for source in sources):
            raise ConfigError(f"{self.file}:{line}: '<<' can only merge mappings", fix="point it at a mapping")
        return list(sources)
