"""All recipes of some directories: which one serves a config key, and the layers that it lies on."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from prony.base.errors import ConfigError
from prony.base.yamldoc import load_yaml
from prony.facts.curves import Curve, load_curves, shipped_curves
from prony.recipe import leaves
from prony.recipe.model import Recipe, read_recipe

MAX_DEPTH = 4
CURVES = "acceptance"
"""The folder beside recipes that holds acceptance curves of one's own."""


@dataclass(frozen=True)
class Catalogue:
    """Recipes by name, every one checked together with its parents; `places`: the directories they were read from.

    curves: the acceptance curves that apply, those of the directories and those that come with Prony.
    """

    recipes: Mapping[str, Recipe]
    places: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = ()

    def chain(self, name: str) -> tuple[Recipe, ...]:
        """Return a recipe's layers, the farthest parent first and itself last."""
        layers: list[Recipe] = []
        current: str | None = name
        while current is not None:
            layers.insert(0, self.recipes[current])
            current = self.recipes[current].extends
        return tuple(layers)

    def find(self, config_key: str) -> Recipe:
        """Return the recipe that serves a config key. Raises ConfigError when none or several do.

        It is the file of that name, else the one recipe without children whose `keys` match.
        """
        if config_key in self.recipes:
            return self.recipes[config_key]
        parents = {recipe.extends for recipe in self.recipes.values()}
        cases = [recipe for name, recipe in sorted(self.recipes.items()) if name not in parents]
        found = [case for case in cases if any(fnmatchcase(config_key, glob) for glob in case.keys)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ConfigError(
                f"'{config_key}' matches the keys of several recipes: {', '.join(case.file for case in found)}",
                fix="narrow their keys until one is left",
            )
        looked_in = f" in {', '.join(self.places)}" if self.places else ""
        raise ConfigError(
            f"no recipe{looked_in} serves '{config_key}'",
            allowed="; ".join(f"{case.name}: {', '.join(case.keys) or 'no keys'}" for case in cases) or "no recipes",
            fix=f"add it to the keys of one of these recipes, or write {config_key}.yaml beside them",
        )


def load_catalogue(dirs: Sequence[Path]) -> Catalogue:
    """Read and check every YAML file under some directories. Raises ConfigError with file:line for the first fault."""
    recipes: list[Recipe] = []
    curves: list[Curve] = []
    for folder in dirs:
        if not folder.is_dir():
            raise ConfigError(f"{folder}: no such directory of recipes", fix="check the path")
        files = sorted(path for path in folder.rglob("*") if path.suffix in (".yaml", ".yml"))
        recipes += [read_recipe(load_yaml(path), path.stem) for path in files if path.parent.name != CURVES]
        for place in sorted({path.parent for path in files if path.parent.name == CURVES}):
            curves += load_curves(place)
    return make_catalogue(recipes, tuple(str(folder) for folder in dirs), tuple(curves))


def make_catalogue(
    recipes: Iterable[Recipe], places: tuple[str, ...] = (), curves: tuple[Curve, ...] = ()
) -> Catalogue:
    """Put recipes together. Raises ConfigError for equal names, missing parents, cycles, depth and idle nulls."""
    by_name: dict[str, Recipe] = {}
    for recipe in recipes:
        if recipe.name in by_name:
            raise ConfigError(
                f"two recipes are called '{recipe.name}': {by_name[recipe.name].file}, {recipe.file}",
                fix="rename one of the files",
            )
        by_name[recipe.name] = recipe
    catalogue = Catalogue(by_name, places, (*curves, *shipped_curves()))
    for recipe in by_name.values():
        _check_parents(recipe, by_name)
        _check_nulls(catalogue.chain(recipe.name))
    return catalogue


def _check_parents(recipe: Recipe, by_name: Mapping[str, Recipe]) -> None:
    seen = [recipe.name]
    current = recipe
    while current.extends is not None:
        if current.extends not in by_name:
            guess = difflib.get_close_matches(current.extends, list(by_name), n=1)
            hint = f" (did you mean '{guess[0]}'?)" if guess else ""
            raise ConfigError(
                f"{current.extends_place} recipe {current.name}: there is no recipe '{current.extends}'{hint}",
                allowed=", ".join(sorted(by_name)),
            )
        seen.append(current.extends)
        if current.extends in seen[:-1]:
            raise ConfigError(
                f"{current.extends_place} recipe {current.name}: extends itself: {' → '.join(seen)}",
                fix="take one 'extends' out",
            )
        current = by_name[current.extends]
    if len(seen) > MAX_DEPTH:
        raise ConfigError(
            f"{recipe.extends_place} recipe {recipe.name}: too many layers: {' → '.join(seen)}",
            allowed=f"at most {MAX_DEPTH} layers",
            fix="merge two of them",
        )


def _check_nulls(chain: Sequence[Recipe]) -> None:
    """Refuse nulls that delete nothing, in the order in which layers and rules are laid."""
    patches = [recipe.leaves for recipe in chain] + [rule.leaves for recipe in chain for rule in recipe.rules]
    known: dict[leaves.Path, leaves.Leaf] = {}
    for patch in patches:
        leaves.refuse_idle_nulls(known, patch)
        known |= {leaf.path: leaf for leaf in patch if leaf.value is not None}
