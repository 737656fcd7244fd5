"""Lint of recipes over all points of a config: what never holds, what nothing reads, what cannot be served."""

import difflib
from collections.abc import Iterable, Iterator, Sequence

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Where
from prony.base.units import counted
from prony.recipe.catalogue import Catalogue
from prony.recipe.deployment import Deployment
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.table import ENGINES
from prony.recipe.model import Recipe, Rule
from prony.recipe.resolve import resolve
from prony.recipe.when import Purpose, fields
from prony.spec.point import Point

PURPOSES: tuple[Purpose, ...] = ("throughput", "eval")


def lint_recipes(catalogue: Catalogue, points: Sequence[Point]) -> tuple[Finding, ...]:
    """Return what is wrong with the recipes of some points, by file and line; shipped ones that serve none are left."""
    served, findings = _served(catalogue, points)
    findings += _idle_rules(catalogue, served)
    findings += _idle_recipes(catalogue, points)
    unique = {(str(one.where), one.rule, one.message): one for one in findings}
    return tuple(sorted(unique.values(), key=lambda one: (str(one.where).partition(":")[0], _line(one), one.rule)))


def _line(finding: Finding) -> int:
    return finding.where.line if finding.where else 0


def _served(catalogue: Catalogue, points: Sequence[Point]) -> tuple[dict[str, list[Point]], list[Finding]]:
    """Resolve every point; return the points of each recipe, and what could not be resolved or looks wrong."""
    served: dict[str, list[Point]] = {}
    findings: list[Finding] = []
    failed: dict[tuple[str, str], list[Point]] = {}
    errors: dict[tuple[str, str], ConfigError] = {}
    for point in points:
        try:
            recipe = catalogue.find(point.config_key)
            served.setdefault(recipe.name, []).append(point)
            findings += _unread(resolve(catalogue, point))
        except ConfigError as error:
            key = (point.config_key, error.message)
            failed.setdefault(key, []).append(point)
            errors[key] = error
    findings += [_not_served(errors[key], members) for key, members in failed.items()]
    return served, findings


def _not_served(error: ConfigError, points: Sequence[Point]) -> Finding:
    missing = error.message.startswith("no recipe")
    told = f" ({counted(len(points), 'point')}, first {points[0].label})"
    return Finding(
        rule="recipe/missing" if missing else "recipe/cannot-serve",
        severity="warn" if missing else "error",
        message=error.message + told,
        where=_place_in(error.message),
        allowed=error.allowed,
        fix=error.fix,
    )


def _place_in(message: str) -> Where | None:
    """Return the file and line that a message begins with."""
    file, _, rest = message.partition(":")
    line = rest.partition(":")[0].partition(" ")[0]
    return Where(file=file, line=int(line)) if line.isdigit() else None


def _unread(deployment: Deployment) -> Iterator[Finding]:
    """Yield variables that begin like the engine's own and that its release does not read."""
    engine = ENGINES[deployment.engine]
    known = engine.env(deployment.image)
    places = {origin.leaf: origin for origin in deployment.origins}
    for role in deployment.roles:
        for one in role.env:
            if known and one.name.startswith(engine.env_prefixes) and one.name not in known:
                origin = places.get(f"roles.{role.name}.env.{one.name}")
                where = Where(file=origin.file, line=origin.line) if origin and origin.line else None
                yield _unknown_variable(one.name, engine, known, where)


def _unknown_variable(name: str, engine: Engine, known: Iterable[str], where: Where | None) -> Finding:
    near = difflib.get_close_matches(name, sorted(known), n=2)
    return Finding(
        rule="recipe/env-unread",
        severity="warn",
        message=f"{engine.name} as known here reads no variable {name}",
        where=where,
        allowed=f"perhaps {' or '.join(near)}" if near else "",
        fix="check the name against the image's engine; a variable that nothing reads changes nothing",
    )


def _idle_rules(catalogue: Catalogue, served: dict[str, list[Point]]) -> Iterator[Finding]:
    """Yield rules that hold at no point, of one's own recipes that serve some; a parent's count over its children."""
    seen: dict[str, list[Point]] = {}
    for name, points in served.items():
        for recipe in catalogue.chain(name):
            seen.setdefault(recipe.name, []).extend(points)
    for name, points in seen.items():
        if name in catalogue.shipped:
            continue  # it serves other configs too
        recipe = catalogue.recipes[name]
        for rule in recipe.rules:
            if not any(_holds(rule, point) for point in points):
                yield _never(recipe, rule, len(points))


def _holds(rule: Rule, point: Point) -> bool:
    return any(all(one.holds(fields(point, purpose)) for one in rule.when) for purpose in PURPOSES)


def _never(recipe: Recipe, rule: Rule, count: int) -> Finding:
    file, _, line = rule.place.rpartition(":")
    told = ", ".join(f"{one.field}: {one.comparison} {' or '.join(map(str, one.values))}" for one in rule.when)
    return Finding(
        rule="recipe/rule-unreachable",
        severity="warn",
        message=f"recipe {recipe.name}: this rule ({told}) holds at none of the {counted(count, 'point')} it serves",
        where=Where(file=file, line=int(line)),
        fix="mend its conditions, or delete it",
    )


def _idle_recipes(catalogue: Catalogue, points: Sequence[Point]) -> Iterator[Finding]:
    keys = {point.config_key for point in points}
    used = set()
    for key in keys:
        try:
            used |= {recipe.name for recipe in catalogue.chain(catalogue.find(key).name)}
        except ConfigError:
            continue  # told where the points are resolved
    for name in catalogue.recipes:
        if name not in used and name not in catalogue.shipped:
            recipe = catalogue.recipes[name]
            yield Finding(
                rule="recipe/idle",
                severity="info",
                message=f"recipe {name} serves no key of this config",
                where=Where(file=recipe.file),
                fix="name its keys, or delete it",
            )
