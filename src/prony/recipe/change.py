"""Changes given on a command line: `roles.decode.args.max-running-requests=64`, laid over everything else."""

from collections.abc import Sequence

import yaml

from prony.base.errors import ConfigError
from prony.base.yamldoc import parse_yaml
from prony.recipe.leaves import Leaf
from prony.recipe.model import read_recipe

_ALLOWED = "engine, env, spec, roles and the like, as roles.agg.args.max-running-requests=64"
_OPEN = ("args", "env", "flags")
"""Below these a name may hold dots: it is one flag or variable."""


def read_changes(texts: Sequence[str]) -> tuple[Leaf, ...]:
    """Return the leaves of NAME=VALUE texts; values are read as YAML, null deletes.

    Raises ConfigError for a name that no recipe has, and for a value that it cannot have.
    """
    return tuple(leaf for text in texts for leaf in _read(text))


def _read(text: str) -> tuple[Leaf, ...]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip("."):
        raise ConfigError(f"--set {text}: no NAME=VALUE", allowed=_ALLOWED)
    path = _path(name)
    try:
        plain = yaml.safe_load(value) if value else None
    except yaml.YAMLError:
        plain = value
    nested: object = plain
    for part in reversed(path):
        nested = {part: nested}
    document = yaml.safe_dump({"schema": 1, **(nested if isinstance(nested, dict) else {})}, width=10**6)
    try:
        leaves = read_recipe(parse_yaml(document, f"--set {text}"), "change").leaves
    except ConfigError as error:
        raise ConfigError(f"--set {text}: {_told(error)}", allowed=error.allowed, fix=error.fix) from None
    if not leaves:
        raise ConfigError(f"--set {text}: '{path[0]}' is of a recipe file, not of a trial", allowed=_ALLOWED)
    return leaves


def _told(error: ConfigError) -> str:
    """Return a message without the place in the text that was made for it."""
    return error.message.rpartition("recipe change: ")[2] or error.message


def _path(name: str) -> list[str]:
    parts = name.split(".")
    for index, part in enumerate(parts):
        if part in _OPEN:
            return [*parts[: index + 1], ".".join(parts[index + 1 :])]
    return parts
