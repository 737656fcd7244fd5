"""A new recipe begun from the one that serves a sibling."""

from pathlib import Path

from prony.base.yamldoc import load_yaml, parse_yaml
from prony.recipe.catalogue import Catalogue
from prony.recipe.model import read_recipe


def sibling_text(catalogue: Catalogue, sibling: str, key: str) -> str:
    """Return the text of the sibling's recipe, comments too, with the new key as its only one.

    Raises ConfigError when no recipe serves the sibling.
    """
    recipe = catalogue.find(sibling)
    lines = Path(recipe.file).read_text(encoding="utf-8").splitlines()
    document = load_yaml(Path(recipe.file))
    kept = [f"# Begun from {recipe.name}, which serves {sibling}.", *lines]
    if "keys" in document:
        first = document.lines["keys"] - 1
        following = [line for name, line in document.lines.items() if line - 1 > first]
        last = min(following, default=len(lines) + 1) - 1
        kept = [kept[0], *lines[:first], f"keys: [{key}]", *_behind(lines[first + 1 : last]), *lines[last:]]
    text = "\n".join(kept) + "\n"
    _check(text, recipe.file, key)
    return text


def _behind(lines: list[str]) -> list[str]:
    """Return what follows a list of keys and is not of it: comments and empty lines at its end."""
    tail: list[str] = []
    for line in reversed(lines):
        if line.strip() and not line.startswith("#"):
            break
        tail.insert(0, line)
    return tail


def _check(text: str, file: str, key: str) -> None:
    """Read the text back: what is written must be a recipe."""
    read_recipe(parse_yaml(text, f"{file} (as {key})"), key)
