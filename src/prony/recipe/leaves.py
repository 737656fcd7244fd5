"""A layer as leaves: one value for one path, with its file and line. Merging layers is merging leaves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prony.base.errors import ConfigError
from prony.base.yamldoc import YamlMap

Path = tuple[str, ...]


@dataclass(frozen=True)
class Leaf:
    """One value of a layer; None deletes what an earlier layer set at that path or below it."""

    path: Path
    value: Any
    file: str
    line: int

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


Leaves = Mapping[Path, Leaf]


def flatten(node: YamlMap, skip: frozenset[str] = frozenset(), prefix: Path = ()) -> Iterator[Leaf]:
    """Yield the leaves of a mapping; lists are leaves. `skip` names top keys that are left out."""
    for key, value in node.items():
        if key in skip:
            continue
        path = (*prefix, key)
        if isinstance(value, YamlMap):
            yield from flatten(value, prefix=path)
        else:
            yield Leaf(path, value, node.file, node.lines[key])


def overlay(base: Leaves, patch: Iterable[Leaf]) -> dict[Path, Leaf]:
    """Return base with a patch laid over it: the patch wins leaf by leaf, and its nulls delete whole branches.

    A null stays as a mark, since `roles.decode.args.x: null` must also hide what `roles.all` sets.
    """
    merged = dict(base)
    for leaf in patch:
        if leaf.value is None:
            for path in [path for path in merged if _is_under(path, leaf.path)]:
                del merged[path]
        merged[leaf.path] = leaf
    return merged


def refuse_idle_nulls(known: Leaves, patch: Sequence[Leaf]) -> None:
    """Raise ConfigError for a null that deletes nothing set earlier and hides nothing that lies under its role."""
    with_patch = {**known, **{leaf.path: leaf for leaf in patch}}
    for leaf in patch:
        if leaf.value is not None or _is_set(known, leaf.path):
            continue
        if not any(_is_set(with_patch, path) for path in _under_role(leaf.path)):
            raise ConfigError(
                f"{leaf.place}: '{leaf.name}: null' deletes what no layer before this one sets",
                fix="delete this line, or check the name of what should be deleted",
            )


def _is_set(leaves: Leaves, path: Path) -> bool:
    return any(_is_under(other, path) and leaf.value is not None for other, leaf in leaves.items())


def _under_role(path: Path) -> Iterator[Path]:
    """Yield the paths whose values a role's leaf hides: those of all roles, and the environment at the top."""
    if path[:1] == ("roles",) and len(path) == 4:
        if path[1] != "all":
            yield ("roles", "all", *path[2:])
        if path[2] == "env":
            yield path[2:]


def _is_under(path: Path, branch: Path) -> bool:
    return path[: len(branch)] == branch
