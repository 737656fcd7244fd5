"""The checked-in tables of engines' flags: which there are, of which release, and which fits an image."""

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from prony.recipe.engines.flags import Flag, Kind

_VERSION = re.compile(r"(?<![0-9.])v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Table:
    """Flags of one release of an engine, and the environment variables that it reads, where they are known."""

    version: str
    source: str
    flags: tuple[Flag, ...]
    env: frozenset[str]

    def owned(self, owners: dict[str, str]) -> tuple[Flag, ...]:
        """Return the flags, those of `owners` marked with who sets them instead of a recipe's args."""
        return tuple(replace(flag, owner=owners.get(flag.name, "")) for flag in self.flags)


@cache
def table(name: str, image: str = "") -> Table:
    """Return the table that fits an image: the newest that is not newer than the release in its tag, else the oldest.

    An image that names no release gets the newest.
    """
    found = dict(_versions(name))
    asked = version_in(image)
    fits = [version for version in found if asked is None or version <= asked]
    return _read(found[max(fits) if fits else min(found)])


def version_in(image: str) -> tuple[int, ...] | None:
    """Return the release that an image's tag names (v0.5.16-cu130 → 0, 5, 16), or None."""
    match = _VERSION.search(image.partition("@")[0].rpartition(":")[2])
    return tuple(int(part) for part in match.groups()) if match else None


@cache
def _versions(name: str) -> tuple[tuple[tuple[int, ...], Path], ...]:
    folder = Path(str(files("prony.recipe.engines") / "tables"))
    matches = (
        (re.fullmatch(rf"{re.escape(name)}-(\d+)\.(\d+)\.(\d+)\.txt", path.name), path) for path in folder.iterdir()
    )
    return tuple((tuple(int(part) for part in match.groups()), path) for match, path in matches if match)


@cache
def _read(path: Path) -> Table:
    """Read a table: a comment line, then `NAME KIND [CHOICE|CHOICE]` or `env NAME` a line. int* takes several words."""
    source, *lines = path.read_text(encoding="utf-8").splitlines()
    flags, env = [], set()
    for line in lines:
        name, kind, *choices = line.split(" ", 2)
        if name == "env":
            env.add(kind)
        else:
            flags.append(_flag(name, kind, tuple(choices[0].split("|")) if choices else ()))
    return Table(path.stem.rpartition("-")[2], source.removeprefix("# "), tuple(flags), frozenset(env))


def _flag(name: str, kind: str, choices: tuple[str, ...]) -> Flag:
    plain: Kind = {"int": "int", "float": "float", "switch": "switch"}.get(kind.rstrip("*"), "text")  # type: ignore[assignment]
    # Bounds are the engine's to check: C's int does not bind Python's.
    return Flag(name, plain, "", choices=choices, many=kind.endswith("*"), least=-_ANY, most=_ANY)


_ANY = 10**18
