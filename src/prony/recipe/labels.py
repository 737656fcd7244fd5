"""A point's labels must equal what runs: engine, model, image, roles, drafting, offload, transfer, router."""

from prony.base.errors import ConfigError
from prony.recipe.deployment import SpecMethod, fault_of_word
from prony.recipe.engines.engine import Engine
from prony.recipe.layers import Layers
from prony.recipe.when import MTP_SIZE
from prony.spec.point import RolePool, Setting, SpecDecoding

# The label `mtp` stands for every drafter that goes with the checkpoint; an n-gram table is a drafter of its own.
METHODS_OF_LABEL: dict[SpecDecoding, tuple[SpecMethod, ...]] = {
    "none": (),
    "mtp": ("mtp", "eagle", "eagle3", "nextn", "dspark"),
    "draft_model": ("draft_model", "ngram"),
}
_FRAMEWORK_ENGINES = {"trt": "trtllm", "dynamo-trt": "dynamo-trtllm", "sglang-disagg": "sglang", "vllm-disagg": "vllm"}
_FRAMEWORK_ENGINES |= {"atom-disagg": "atom", "mori-sglang": "sglang", "mooncake-atom": "atom"}


def engine_of_framework(framework: str) -> str:
    """Return the engine that a framework's label means: `sglang-disagg` is sglang with its roles apart."""
    return _FRAMEWORK_ENGINES.get(framework, framework)


def check_names(layers: Layers) -> None:
    """Refuse a point whose names, which become arguments, cannot be given to a program."""
    for name in ("model", "image"):
        text = getattr(layers.point, name)
        fault = fault_of_word(text)
        if fault:
            raise ConfigError(
                f"{layers.point.config_key}: {name} {fault}: {text!r}", fix="mend the key in the master config"
            )


def check_labels(layers: Layers, engine: Engine) -> None:
    """Refuse a recipe that would run something else than the point's labels say."""
    point = layers.point
    runs_as = point.framework if engine.name == engine_of_framework(point.framework) else engine.name
    for leaf, runs, label in (
        ("engine", runs_as, point.framework),
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
    _check_spec(layers, engine)
    _check_offload(layers, engine)
    _check_transfer(layers, engine)


def check_pool(layers: Layers, pool: RolePool) -> None:
    """Refuse a recipe whose replicas or devices of a role are not the point's, and settings that say otherwise."""
    for name, has in (("replicas", pool.replicas), ("gpus", pool.gpus // max(1, pool.replicas))):
        own = f"roles.{pool.role}.{name}"
        said = layers.count(own if layers.leaf(own) else f"roles.all.{name}")
        if said is not None and said != has:
            raise ConfigError(
                f"{layers.place(own)}: {said} {name} of {pool.role}, but the point has {has}",
                fix="mend the master config or the recipe: a label must equal what runs",
            )
    for setting in pool.settings:
        _check_setting(layers, setting)


def _check_setting(layers: Layers, setting: Setting) -> None:
    """A setting of the master that says what the recipe says too must say the same."""
    steps = layers.count("spec.steps") if layers.leaf("spec.method") else 0
    if setting.name == MTP_SIZE and setting.value != str(steps):
        raise ConfigError(
            f"{layers.place('spec.steps')}: {layers.point.config_key} sets {setting.name}={setting.value}, "
            f"the recipe drafts {steps} tokens",
            fix="make spec.steps and the setting agree, or drop the setting",
        )


def _check_spec(layers: Layers, engine: Engine) -> None:
    method = layers.leaf("spec.method")
    orphan = next((leaf for name in _SPEC_LEAVES if (leaf := layers.leaf(f"spec.{name}"))), None)
    if orphan and not method:
        raise ConfigError(f"{orphan.place}: {orphan.name} without spec.method", fix="add the method, or delete this")
    allowed = [name for name in METHODS_OF_LABEL[layers.point.spec_decoding] if name in engine.spec_methods]
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
    options = next((leaf for path, leaf in layers.merged.items() if path[:2] == ("spec", "options")), None)
    if options is not None and not engine.spec_options:
        raise ConfigError(f"{options.place}: {engine.name} takes no {options.name}", fix="set its own flags in args")
    if method is not None and layers.get("spec.acceptance") == "golden" and not engine.golden:
        raise ConfigError(f"{layers.place('spec.acceptance')}: {engine.name} cannot simulate acceptance")


_SPEC_LEAVES = ("steps", "draft_tokens", "topk", "draft_model", "acceptance", "drafter", "draft_sample", "rejection")


def _check_offload(layers: Layers, engine: Engine) -> None:
    asked = layers.point.kv_offload
    for name, label in (("tier", asked.mode), ("backend", asked.backend or "none")):
        leaf = layers.leaf(f"kv_offload.{name}")
        if leaf and leaf.value != label:
            raise ConfigError(
                f"{leaf.place}: {leaf.name} is '{leaf.value}', but {layers.point.config_key} asks for '{label}'",
                fix="put it under a rule with 'when: {kv_offload: …}', or mend the master config",
            )
    if asked.mode != "none" and asked.backend not in engine.offload_backends:
        raise ConfigError(
            f"{layers.place('engine')}: {engine.name} has no KV offload backend '{asked.backend}', which "
            f"{layers.point.config_key} asks for",
            allowed=", ".join(sorted(engine.offload_backends)) or "none",
        )


def _check_transfer(layers: Layers, engine: Engine) -> None:
    """Roles that are apart need a way for KV and a router that knows both; a router must be the one that is named."""
    point, kind = layers.point, layers.leaf("topology.router.kind")
    apart = any(pool.role == "prefill" for pool in point.topology.pools)
    if apart and point.kv_transfer not in engine.kv_transfers:
        raise ConfigError(
            f"{point.config_key}: {engine.name} cannot hand KV over by '{point.kv_transfer}'",
            allowed=", ".join(sorted(engine.kv_transfers)) or "none",
            fix="mend kv-p2p-transfer in the master config",
        )
    several = sum(pool.replicas for pool in point.topology.pools) > 1 or engine.always_routed
    if several and kind is None:
        raise ConfigError(
            f"{layers.recipe.file} recipe {layers.recipe.name}: nothing stands before the "
            f"{sum(pool.replicas for pool in point.topology.pools)} workers of {point.config_key}",
            allowed=f"topology.router.kind: {', '.join(sorted(engine.routers)) or f'none that {engine.name} knows'}",
            fix="add 'topology: {router: {kind: …}}'",
        )
    if kind is None:
        return
    if kind.value not in engine.routers:
        raise ConfigError(
            f"{kind.place}: {engine.name} has no router '{kind.value}'", allowed=", ".join(sorted(engine.routers))
        )
    if point.router is not None and point.router.name != kind.value:
        raise ConfigError(
            f"{kind.place}: the router is '{kind.value}', but {point.config_key} names '{point.router.name}'",
            fix="make the recipe and the master config agree",
        )
