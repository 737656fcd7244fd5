"""Validated master entries as the generator reads them: hyphens in names, whole numbers as numbers.

The schema takes `conc_list` and "8" too; what reads the values by name afterwards must not lose them.
"""

from typing import Any

from prony.base.yamldoc import YamlList, YamlMap

_NUMBERS = frozenset({"isl", "osl", "tp", "ep", "num-worker", "conc-start", "conc-end", "conc-list"})


def normal(node: Any, name: str = "") -> Any:
    """Return a value with its names and numbers in the one form; what is in it already is returned itself."""
    if isinstance(node, YamlMap):
        return _map(node)
    if isinstance(node, YamlList):
        items = [normal(item, name) for item in node]
        return node if all(new is old for new, old in zip(items, node, strict=True)) else _list(node, items)
    if isinstance(node, str) and name in _NUMBERS:
        return int(node)
    return node


def _map(node: YamlMap) -> YamlMap:
    names = {key: key.replace("_", "-") for key in node}
    values = {key: normal(value, names[key]) for key, value in node.items()}
    if all(names[key] == key and values[key] is value for key, value in node.items()):
        return node
    made = YamlMap(node.file, node.line)
    for key, value in values.items():
        made[names[key]] = value
        made.lines[names[key]] = node.lines[key]
    return made


def _list(node: YamlList, items: list[Any]) -> YamlList:
    made = YamlList(node.line)
    made.extend(items)
    made.lines.extend(node.lines)
    return made
