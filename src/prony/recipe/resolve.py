"""From a catalogue and a point to a deployment in which nothing is left to decide. Pure and deterministic."""

from collections.abc import Iterator, Sequence

from prony.recipe.catalogue import Catalogue
from prony.recipe.deployment import Deployment, Origin, ProcessRole, Role
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.flags import check_args
from prony.recipe.engines.table import engine_named
from prony.recipe.intent import Intent, Rendered, RoleIntent
from prony.recipe.labels import check_labels, check_names, check_pool
from prony.recipe.layers import Layers
from prony.recipe.leaves import Leaf, Leaves, overlay
from prony.recipe.model import Recipe
from prony.recipe.when import Purpose, fields
from prony.spec.point import Point

_OPTIONAL = ("engine", "python", "model.revision", "model.files", "context", "graph_batch", "patches")
_UNSAID = {"topology": "point", "kv_transfer": "point", "kv_offload": "point", "prony itself": "prony"}
_OF_SPEC = ("method", "steps", "draft_tokens", "topk", "draft_model", "acceptance")


def resolve(
    catalogue: Catalogue, point: Point, purpose: Purpose = "throughput", changes: Sequence[Leaf] = ()
) -> Deployment:
    """Return what serves a point: layers, then rules, then expressions, then the engine's argv.

    purpose: an eval never runs with simulated acceptance. changes: laid over everything, for trials. Raises ConfigError
    (file:line, allowed, fix) when no recipe serves it or its labels would not equal what runs.
    """
    recipe = catalogue.find(point.config_key)
    merged = overlay(merge(catalogue.chain(recipe.name), point, purpose), changes)
    layers = Layers(merged, recipe, point, purpose)
    engine = engine_named(layers.required("engine"), layers.place("engine"))
    check_labels(layers, engine)
    intent = layers.intent(catalogue.curves)
    check_names(layers)
    roles = tuple(_roles(layers, engine, intent))
    entry: ProcessRole = "router" if intent.router else roles[0].name
    return Deployment(
        engine=engine.name,
        image=point.image,
        image_digest=layers.get("image.digest"),
        model=intent.model,
        served_model=intent.served_model,
        topology=point.topology,
        roles=roles,
        entry_role=entry,
        python=layers.get("python"),
        tokenizer=engine.tokenizer,
        simulated=engine.simulated,
        spec=intent.spec,
        chat_template=point.spec_decoding == "mtp",
        patches=layers.patches(),
        recipe=recipe.name,
        origins=tuple(sorted(_origins(layers, engine, roles), key=lambda origin: origin.leaf)),
    )


def merge(chain: Sequence[Recipe], point: Point, purpose: Purpose = "throughput") -> Leaves:
    """Lay the bases from the farthest parent to the recipe itself, then their rules that hold, in the same order."""
    merged: Leaves = {}
    for recipe in chain:
        merged = overlay(merged, recipe.leaves)
    point_fields = fields(point, purpose)
    for rule in (rule for recipe in chain for rule in recipe.rules):
        if all(condition.holds(point_fields) for condition in rule.when):
            merged = overlay(merged, rule.leaves)
    return merged


def _roles(layers: Layers, engine: Engine, intent: Intent) -> Iterator[Role]:
    """Yield the workers of every pool, then the router before them."""
    flags = (*engine.flags(intent.image), *layers.flags())
    for pool in intent.pools:
        check_pool(layers, pool)
        asked = RoleIntent(pool, layers.args(pool.role))
        check_args(asked.args, flags, engine.name)
        on_cpu = layers.point.runner.removeprefix("cluster:").startswith("cpu")  # a CPU host has no devices to give
        gpus = 0 if on_cpu else pool.gpus // max(1, pool.replicas)
        yield _role(layers, engine, pool.role, engine.render(intent, asked), replicas=pool.replicas, gpus=gpus)
    if intent.router is not None:
        kind = intent.router.kind
        check_args(intent.router.args, (*engine.router_flags[kind](), *layers.flags()), kind)
        rendered = engine.routers[kind](intent, RoleIntent(intent.pools[0], intent.router.args))
        yield _role(layers, engine, "router", rendered)


def _role(
    layers: Layers, engine: Engine, name: ProcessRole, rendered: Rendered, replicas: int = 1, gpus: int = 0
) -> Role:
    return Role(
        name=name,
        replicas=replicas,
        argv=rendered.argv,
        env=layers.env(name, rendered.env),
        ports=rendered.ports,
        gpus=gpus,
        ready=layers.probe(engine.probe),
        files=rendered.files,
    )


def _origin(layers: Layers, name: str, default: str, shown: str | None = None) -> Origin:
    """Return where a leaf comes from: its file and line, or `default` where no layer sets it."""
    leaf = layers.leaf(name)
    return _written(shown or name, leaf) if leaf else Origin(leaf=shown or name, file=default, line=0)


def _origins(layers: Layers, engine: Engine, roles: Sequence[Role]) -> Iterator[Origin]:
    """Yield where each leaf of a deployment comes from: file and line, or `point`, `default` or the engine."""
    for name in ("image", "topology"):
        yield Origin(leaf=name, file="point", line=0)
    for name in ("model.id", "served_model"):
        yield _origin(layers, name, "point")
    for name in ("model.location", "ready.path", "ready.timeout"):
        yield _origin(layers, name, "default")
    optional = (*_OPTIONAL, *(f"spec.{name}" for name in _OF_SPEC), "topology.router.kind", "kv_offload.ratio")
    yield from (_origin(layers, name, "") for name in optional if layers.leaf(name))
    if layers.leaf("image.digest"):
        yield _origin(layers, "image.digest", "", "image_digest")
    for role in roles:
        yield from _role_origins(layers, engine, role)


def _role_origins(layers: Layers, engine: Engine, role: Role) -> Iterator[Origin]:
    """Yield where each argument and variable of a role comes from, those that the engine adds too."""
    said = {kind: layers.of_role(role.name, kind) for kind in ("args", "env")}
    for kind, items in said.items():
        for name, leaf in items.items():
            yield _written(f"roles.{role.name}.{kind}.{name}", leaf)
    for flag in engine.flags(layers.point.image):
        if f"--{flag.name}" in role.argv and flag.name not in said["args"]:
            default = _UNSAID.get(flag.owner, f"engine {engine.name}")
            yield _origin(layers, flag.owner, default, f"roles.{role.name}.args.{flag.name}")
    for one in role.env:
        if one.name not in said["env"]:
            yield _origin(layers, "spec.method", f"engine {engine.name}", f"roles.{role.name}.env.{one.name}")


def _written(name: str, leaf: Leaf) -> Origin:
    return Origin(leaf=name, file=leaf.file, line=leaf.line)
