"""All recipes of some directories: which one serves a config key, and the layers that it lies on."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
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

    curves: the acceptance curves that apply, those of the directories and those that come with Prony. shipped: names of
    recipes that come with Prony, which serve what no other recipe does.
    """

    recipes: Mapping[str, Recipe]
    places: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = ()
    shipped: frozenset[str] = frozenset()

    def chain(self, name: str) -> tuple[Recipe, ...]:
        """Return a recipe's layers, the farthest parent first and itself last."""
        layers: list[Recipe] = []
        current: str | None = name
        while current is not None:
            layers.insert(0, self.recipes[current])
            current = self.recipes[current].extends
        return tuple(layers)

    @cached_property
    def cases(self) -> tuple[Recipe, ...]:
        """Recipes that no other extends, by name: they may serve keys."""
        parents = {recipe.extends for recipe in self.recipes.values()}
        return tuple(recipe for name, recipe in sorted(self.recipes.items()) if name not in parents)

    def find(self, config_key: str) -> Recipe:
        """Return the recipe that serves a config key. Raises ConfigError when none or several do.

        It is the file of that name, else the one whose `keys` match; one's own recipes come before shipped ones.
        """
        matches = [case for case in self.cases if any(fnmatchcase(config_key, glob) for glob in case.keys)]
        own = [case for case in matches if case.name not in self.shipped]
        if config_key in self.recipes and (config_key not in self.shipped or not own):
            return self.recipes[config_key]
        found = own or matches
        if len(found) == 1:
            return found[0]
        if found:
            raise ConfigError(
                f"'{config_key}' matches the keys of several recipes: {', '.join(case.file for case in found)}",
                fix="narrow their keys until one is left",
            )
        looked_in = f" in {', '.join(self.places)}" if self.places else ""
        mine = [case for case in self.cases if case.name not in self.shipped]
        told = [f"{case.name}: {', '.join(case.keys) or 'no keys'}" for case in mine]
        raise ConfigError(
            f"no recipe{looked_in} serves '{config_key}'",
            allowed="; ".join(
                told + ([f"{len(self.shipped)} shipped ones (prony recipe list)"] if self.shipped else [])
            )
            or "no recipes",
            fix=f"add it to the keys of one of these recipes, or write {config_key}.yaml beside them",
        )


def shipped_folder() -> Path | None:
    """Return the folder of the recipes that come with Prony: in the installed package, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    folders = (package / "recipes", package.parent.parent / "recipes")
    return next((folder for folder in folders if (folder / "vllm.yaml").is_file()), None)


def load_catalogue(dirs: Sequence[Path], *, shipped: bool = True) -> Catalogue:
    """Read and check every YAML file under some directories, and the shipped recipes of other names.

    Raises ConfigError with file:line for the first fault.
    """
    recipes: list[Recipe] = []
    curves: list[Curve] = []
    for folder in dirs:
        if not folder.is_dir():
            raise ConfigError(f"{folder}: no such directory of recipes", fix="check the path")
        files = sorted(path for path in folder.rglob("*") if path.suffix in (".yaml", ".yml"))
        recipes += [read_recipe(load_yaml(path), path.stem) for path in files if path.parent.name != CURVES]
        for place in sorted({path.parent for path in files if path.parent.name == CURVES}):
            curves += load_curves(place)
    own = {recipe.name for recipe in recipes}
    ours = shipped_folder() if shipped else None
    others = sorted(ours.glob("*.yaml")) if ours else []
    more = [read_recipe(load_yaml(path), path.stem) for path in others if path.stem not in own]
    places = tuple(str(folder) for folder in dirs)
    return make_catalogue((*recipes, *more), places, tuple(curves), frozenset(recipe.name for recipe in more))


def make_catalogue(
    recipes: Iterable[Recipe],
    places: tuple[str, ...] = (),
    curves: tuple[Curve, ...] = (),
    shipped: frozenset[str] = frozenset(),
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
    catalogue = Catalogue(by_name, places, (*curves, *shipped_curves()), shipped)
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
