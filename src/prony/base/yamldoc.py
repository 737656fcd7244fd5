"""YAML read with libyaml, with the line of every key and item, and duplicate keys refused."""

from pathlib import Path
from typing import Any

import yaml

from prony.base.errors import ConfigError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE_TAG = "tag:yaml.org,2002:merge"


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


def parse_yaml(text: str, file: str) -> YamlMap:
    """Read YAML text that must hold one mapping; `file` names it in errors. Raises ConfigError with file:line."""
    try:
        node = yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{file}:{line}: not YAML: {error.problem}", fix="mend the syntax at that line") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: not YAML: {error}", fix="remove control characters; save as UTF-8") from None
    if node is None:
        raise ConfigError(f"{file}: is empty", allowed="a mapping", fix="write at least one key")
    value = _Builder(file).build(node)
    if not isinstance(value, YamlMap):
        raise ConfigError(f"{file}:{node.start_mark.line + 1}: must contain a mapping", allowed="key: value lines")
    return value


class _Builder:
    """Turns composed nodes into plain values that keep their lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.scalars = yaml.constructor.SafeConstructor()
        self.open: set[int] = set()

    def build(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if id(node) in self.open:
            raise ConfigError(
                f"{self.file}:{node.start_mark.line + 1}: an alias that contains itself", fix="write it out"
            )
        self.open.add(id(node))
        value = self.mapping(node) if isinstance(node, yaml.MappingNode) else self.sequence(node)
        self.open.discard(id(node))
        return value

    def scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag == "tag:yaml.org,2002:str":
            return node.value
        try:
            return self.scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            line = node.start_mark.line + 1
            raise ConfigError(
                f"{self.file}:{line}: {node.value!r} cannot be read as {node.tag.rsplit(':', 1)[-1]}",
                fix="put it in quotes if text is meant",
            ) from None

    def sequence(self, node: yaml.Node) -> YamlList:
        items = YamlList(node.start_mark.line + 1)
        for child in node.value:
            items.append(self.build(child))
            items.lines.append(child.start_mark.line + 1)
        return items

    def mapping(self, node: yaml.MappingNode) -> YamlMap:
        result = YamlMap(self.file, node.start_mark.line + 1)
        merged: list[YamlMap] = []
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _MERGE_TAG:
                merged.extend(self.merge_sources(value_node, line))
                continue
            key = self.key(key_node, line)
            if key in result:
                first = result.lines[key]
                raise ConfigError(
                    f"{self.file}:{line}: '{key}' stands here twice (first at line {first})",
                    fix="keep one of the two; the last would silently win",
                )
            result[key] = self.build(value_node)
            result.lines[key] = line
        for source in merged:
            for key, value in source.items():
                if key not in result:
                    result[key] = value
                    result.lines[key] = source.lines[key]
        return result

    def key(self, node: yaml.Node, line: int) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise ConfigError(f"{self.file}:{line}: a key must be a plain word", fix="use a text key")
        value = self.scalar(node)
        return value if isinstance(value, str) else str(node.value)

    def merge_sources(self, node: yaml.Node, line: int) -> list[YamlMap]:
        value = self.build(node)
        sources = value if isinstance(value, YamlList) else [value]
        if not all(isinstance(source, YamlMap) for source in sources):
            raise ConfigError(f"{self.file}:{line}: '<<' can only merge mappings", fix="point it at a mapping")
        return list(sources)
