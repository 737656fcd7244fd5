"""From a catalogue and a point to a deployment in which nothing is left to decide. Pure and deterministic."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from prony.base.errors import ConfigError
from prony.recipe.catalogue import Catalogue
from prony.recipe.deployment import Deployment, EnvVar, ModelFile, ModelRef, Origin, Probe, Role, fault_of_word
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.flags import Arg, check_args
from prony.recipe.engines.table import engine_named
from prony.recipe.intent import Intent, RoleIntent, SpecIntent
from prony.recipe.leaves import Leaf, Leaves, Path, overlay
from prony.recipe.model import Recipe, seconds_of
from prony.recipe.when import fields, numbers
from prony.spec.expression import evaluate_whole, substitute
from prony.spec.point import Point, RolePool

_METHODS_OF_LABEL = {"none": (), "mtp": ("mtp", "eagle"), "draft_model": ("draft_model",)}
_OPTIONAL = ("engine", "python", "model.revision", "model.files", "spec.method", "spec.steps", "spec.draft_model")


def resolve(catalogue: Catalogue, point: Point) -> Deployment:
    """Return what serves a point: layers, then rules, then expressions, then the engine's argv.

    Raises ConfigError (file:line, allowed, fix) when no recipe serves it or its labels would not equal what runs.
    """
    recipe = catalogue.find(point.config_key)
    layers = _Layers(merge(catalogue.chain(recipe.name), point), recipe, point)
    engine = engine_named(layers.required("engine"), layers.place("engine"))
    _check_labels(layers, engine)
    intent = layers.intent()
    _check_names(layers)
    roles = tuple(_role(layers, engine, intent, pool) for pool in point.topology.pools)
    return Deployment(
        engine=engine.name,
        image=point.image,
        image_digest=layers.get("image.digest"),
        model=intent.model,
        served_model=intent.served_model,
        topology=point.topology,
        roles=roles,
        entry_role=roles[0].name,
        python=layers.get("python"),
        tokenizer=engine.tokenizer,
        simulated=engine.simulated,
        recipe=recipe.name,
        origins=tuple(sorted(layers.origins(engine, roles), key=lambda origin: origin.leaf)),
    )


def merge(chain: Sequence[Recipe], point: Point) -> Leaves:
    """Lay the bases from the farthest parent to the recipe itself, then their rules that hold, in the same order."""
    merged: Leaves = {}
    for recipe in chain:
        merged = overlay(merged, recipe.leaves)
    point_fields = fields(point)
    for rule in (rule for recipe in chain for rule in recipe.rules):
        if all(condition.holds(point_fields) for condition in rule.when):
            merged = overlay(merged, rule.leaves)
    return merged


class _Layers:
    """The merged leaves of one point, read as typed values."""

    def __init__(self, merged: Leaves, recipe: Recipe, point: Point) -> None:
        self.merged = merged
        self.recipe = recipe
        self.point = point
        self.numbers = numbers(point)

    def leaf(self, name: str) -> Leaf | None:
        leaf = self.merged.get(tuple(name.split(".")))
        return leaf if leaf is not None and leaf.value is not None else None

    def get(self, name: str) -> Any:
        leaf = self.leaf(name)
        return leaf.value if leaf else None

    def place(self, name: str) -> str:
        """Return file:line of a leaf, or the recipe's file when the leaf isn't set."""
        leaf = self.leaf(name)
        return leaf.place if leaf else self.recipe.file

    def required(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise ConfigError(
                f"{self.recipe.file} recipe {self.recipe.name}: '{name}' is missing",
                fix=f"add '{name}: …' here or in a parent",
            )
        return str(value)

    def count(self, name: str) -> int | None:
        """Return an integer leaf with its expression computed."""
        leaf = self.leaf(name)
        if leaf is None:
            return None
        with _at(leaf):
            return evaluate_whole(str(leaf.value), self.numbers)

    def intent(self) -> Intent:
        model = ModelRef(
            id=self.get("model.id") or self.point.model,
            revision=self.get("model.revision"),
            location=self.get("model.location") or "none",
            files=tuple(ModelFile.model_validate(file) for file in self.get("model.files") or ()),
        )
        served = self.get("served_model") or self.point.model
        return Intent(model=model, served_model=served, spec=self.spec(), place=self.place("engine"))

    def spec(self) -> SpecIntent | None:
        method = self.leaf("spec.method")
        if method is None:
            return None
        return SpecIntent(method.value, self.count("spec.steps"), self.get("spec.draft_model"), method.place)

    def of_role(self, role: str, kind: str) -> dict[str, Leaf]:
        """Return the args or env of a role, by name: the role's own over those of `all` over the top level's."""
        found: dict[str, Leaf] = {}
        for prefix in ((kind,), ("roles", "all", kind), ("roles", role, kind)):
            found |= {path[-1]: leaf for path, leaf in self.merged.items() if _is_child(path, prefix)}
        return {name: leaf for name, leaf in sorted(found.items()) if leaf.value is not None}

    def args(self, role: str) -> tuple[Arg, ...]:
        return tuple(Arg(name, self.words(leaf), leaf.place) for name, leaf in self.of_role(role, "args").items())

    def env(self, role: str) -> tuple[EnvVar, ...]:
        items = self.of_role(role, "env").items()
        return tuple(EnvVar(name=name, value=self.words(leaf)[0]) for name, leaf in items)

    def words(self, leaf: Leaf) -> tuple[str, ...]:
        """Return the values of an argument as text; none for a bare flag."""
        if leaf.value is True:
            return ()
        values = leaf.value if isinstance(leaf.value, list) else [leaf.value]
        with _at(leaf):
            return tuple(substitute(str(value), self.numbers) for value in values)

    def probe(self) -> Probe:
        probe = Probe()
        timeout = self.get("ready.timeout")
        return Probe(
            path=self.get("ready.path") or probe.path,
            timeout_s=seconds_of(timeout) if timeout else probe.timeout_s,
        )

    def origin(self, name: str, default: str, shown: str | None = None) -> Origin:
        """Return where a leaf comes from: its file and line, or `default` where no layer sets it."""
        leaf = self.leaf(name)
        return _origin(shown or name, leaf) if leaf else Origin(leaf=shown or name, file=default, line=0)

    def origins(self, engine: Engine, roles: Sequence[Role]) -> Iterator[Origin]:
        """Yield where each leaf of a deployment comes from: file and line, or `point`, `default` or the engine."""
        for name in ("image", "topology"):
            yield Origin(leaf=name, file="point", line=0)
        for name in ("model.id", "served_model"):
            yield self.origin(name, "point")
        for name in ("model.location", "ready.path", "ready.timeout"):
            yield self.origin(name, "default")
        optional = (
            "engine",
            "python",
            "model.revision",
            "model.files",
            "spec.method",
            "spec.steps",
            "spec.draft_model",
        )
        yield from (self.origin(name, "") for name in optional if self.leaf(name))
        if self.leaf("image.digest"):
            yield self.origin("image.digest", "", "image_digest")
        for role in roles:
            yield from self.role_origins(engine, role)

    def role_origins(self, engine: Engine, role: Role) -> Iterator[Origin]:
        """Yield where each argument and variable of a role comes from, those that the engine adds too."""
        for kind in ("args", "env"):
            for name, leaf in self.of_role(role.name, kind).items():
                yield _origin(f"roles.{role.name}.{kind}.{name}", leaf)
        for flag in engine.flags:
            if flag.owner and f"--{flag.name}" in role.argv:
                yield self.origin(flag.owner, f"engine {engine.name}", f"roles.{role.name}.args.{flag.name}")


@contextlib.contextmanager
def _at(leaf: Leaf) -> Iterator[None]:
    """Put file:line of a leaf before the message of a ConfigError."""
    try:
        yield
    except ConfigError as error:
        message = f"{leaf.place} {leaf.name}: {error.message}"
        raise ConfigError(message, allowed=error.allowed, fix=error.fix) from None


def _origin(name: str, leaf: Leaf) -> Origin:
    return Origin(leaf=name, file=leaf.file, line=leaf.line)


def _is_child(path: Path, parent: Path) -> bool:
    return len(path) == len(parent) + 1 and path[: len(parent)] == parent


def _role(layers: _Layers, engine: Engine, intent: Intent, pool: RolePool) -> Role:
    own = f"roles.{pool.role}.replicas"
    replicas = layers.count(own if layers.leaf(own) else "roles.all.replicas")
    if replicas is not None and replicas != pool.replicas:
        raise ConfigError(
            f"{layers.recipe.file}: {replicas} replicas of {pool.role}, but the point has {pool.replicas}",
            fix="mend the master config or the recipe: a label must equal what runs",
        )
    role = RoleIntent(pool, layers.args(pool.role))
    check_args(role.args, engine.flags, engine.name)
    return Role(
        name=pool.role,
        replicas=pool.replicas,
        argv=engine.render(intent, role),
        env=layers.env(pool.role),
        ready=layers.probe(),
    )


def _check_names(layers: _Layers) -> None:
    """Refuse a point whose names, which become arguments, cannot be given to a program."""
    for name in ("model", "image"):
        text = getattr(layers.point, name)
        fault = fault_of_word(text)
        if fault:
            raise ConfigError(
                f"{layers.point.config_key}: {name} {fault}: {text!r}", fix="mend the key in the master config"
            )


def _check_labels(layers: _Layers, engine: Engine) -> None:
    """Refuse a recipe that would run something else than the point's labels say."""
    point = layers.point
    for leaf, runs, label in (
        ("engine", engine.name, point.framework),
        ("model.id", layers.get("model.id") or point.model, point.model),
        ("image.ref", layers.get("image.ref") or point.image, point.image),
    ):
        if runs != label:
            raise ConfigError(
                f"{layers.place(leaf)}: {leaf} is '{runs}', but {point.config_key} asks for '{label}'",
                fix="make the recipe and the master config agree, or take another recipe",
            )
    digest = layers.leaf("image.digest")
    if digest and not layers.get("image.ref"):
        raise ConfigError(f"{digest.place}: image.digest without image.ref", fix="add the ref that has this digest")
    roles = [pool.role for pool in point.topology.pools]
    if not engine.roles.issuperset(roles):
        raise ConfigError(
            f"{layers.place('engine')}: {engine.name} can't serve the roles {', '.join(roles)} of {point.config_key}",
            allowed=", ".join(sorted(engine.roles)),
        )
    _check_spec_label(layers, engine)


def _check_spec_label(layers: _Layers, engine: Engine) -> None:
    method = layers.leaf("spec.method")
    orphan = layers.leaf("spec.steps") or layers.leaf("spec.draft_model")
    if orphan and not method:
        raise ConfigError(f"{orphan.place}: {orphan.name} without spec.method", fix="add the method, or delete this")
    allowed = [name for name in _METHODS_OF_LABEL[layers.point.spec_decoding] if name in engine.spec_methods]
    label = f"{layers.point.config_key} is labelled spec-decoding: {layers.point.spec_decoding}"
    if method is None and layers.point.spec_decoding != "none":
        raise ConfigError(
            f"{layers.recipe.file} recipe {layers.recipe.name}: {label}, but nothing here speculates",
            allowed=f"spec.method: {', '.join(allowed) or f'none that {engine.name} can do'}",
            fix=f"add a rule: when {{spec_decoding: {layers.point.spec_decoding}}}, spec {{method: …, steps: …}}",
        )
    if method is not None and method.value not in allowed:
        raise ConfigError(
            f"{method.place}: spec.method is '{method.value}', but {label}",
            allowed=f"spec.method: {', '.join(allowed) or 'none'}",
            fix="put spec under a rule with 'when: {spec_decoding: …}'",
        )
