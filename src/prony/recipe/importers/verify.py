"""An import resolved again: what the recipe gives must be what was found, flag by flag."""

from collections.abc import Iterator, Mapping

import yaml

from prony.base.errors import PronyError
from prony.base.yamldoc import parse_yaml
from prony.recipe.catalogue import make_catalogue
from prony.recipe.deployment import Deployment, Role
from prony.recipe.engines.table import ENGINES
from prony.recipe.importers.launch import Found, FoundRole, Import, Values
from prony.recipe.importers.write import recipe_text
from prony.recipe.model import read_recipe
from prony.recipe.resolve import resolve
from prony.spec.point import FixedSeqLen, KvOffload, Point, Topology

_OPTIONS = "config."
_PLACES = ("model.id", "served_model", "prony itself")
_SIMULATED = ("synthetic_acceptance_length", "synthetic_acceptance_rates")


def imported(found: Found, key: str, framework: str, offload: KvOffload | None = None) -> Import:
    """Return an import with what does not agree: nothing, when it is verified."""
    text = recipe_text(found, [key])
    point = _point(found, key, framework, offload or found.offload)
    try:
        recipe = read_recipe(parse_yaml(text, f"{key}.yaml"), key)
        deployment = resolve(make_catalogue([recipe]), point, "eval")
    except PronyError as error:
        return Import(key, text, point, found.notes, (f"{found.place}: {error.message}",))
    return Import(key, text, point, found.notes, tuple(differences(found, deployment)))


def _point(found: Found, key: str, framework: str, offload: KvOffload) -> Point:
    return Point(
        config_key=key,
        image=found.image,
        model=found.model,
        model_prefix=key.partition("-")[0],
        precision="unknown",
        framework=framework,
        runner="gpu",
        multinode=len(found.roles) > 1 or found.roles[0].pool.replicas > 1,
        disagg=len(found.roles) > 1,
        topology=Topology(pools=tuple(role.pool for role in found.roles)),
        workload=FixedSeqLen(isl=1024, osl=1024),
        concurrency=1,
        spec_decoding=found.spec_decoding,
        kv_transfer=found.kv_transfer,
        kv_offload=offload,
        cpu_dram_gb=1000 if offload.mode != "none" else 0,
    )


def differences(found: Found, deployment: Deployment) -> Iterator[str]:
    """Yield what a deployment starts otherwise than was found. Flags that only the deployment has are the engine's."""
    roles = {role.name: role for role in deployment.roles}
    for one in found.roles:
        role = roles[one.pool.role]
        yield from _args(found, one, role)
        env = {item.name: item.value for item in role.env}
        for name, value in one.env.items():
            if env.get(name) != value:
                yield f"{found.place} {one.pool.role}: {name}={value} was found, {env.get(name)} is set"


def _args(found: Found, one: FoundRole, role: Role) -> Iterator[str]:
    actual = words_by_flag(role.argv) | options_of(role)
    same, owners = (
        same_names(found.engine),
        {flag.name: flag.owner for flag in ENGINES[found.engine].flags(found.image)},
    )
    for name, values in one.args.items():
        if owners.get(name) in _PLACES or (owners.get(name) == "topology" and values == ("1",)):
            continue  # where things lie is bound at start, and a size of one is every engine's default
        resolved = actual.get(same.get(name, name))
        if resolved is None and name in actual:
            resolved = actual[name]
        if resolved is None or not equal_words(values, resolved):
            told = "nothing" if resolved is None else " ".join(resolved) or "a bare flag"
            yield f"{found.place} {one.pool.role}: {name} {' '.join(values)} was found, {told} is given"


def words_by_flag(argv: Values) -> dict[str, Values]:
    """Return the words behind each flag of an argv."""
    found: dict[str, Values] = {}
    name = ""
    for word in argv:
        if word.startswith("--"):
            name = word.removeprefix("--")
            found[name] = found.get(name, ())
        elif name:
            found[name] = (*found[name], word)
    return found


def options_of(role: Role) -> dict[str, Values]:
    """Return the keys of a role's options files as flags: `config.moe_config.backend`."""
    flat: dict[str, Values] = {}
    for file in role.files:
        _flatten(yaml.safe_load(file.text), _OPTIONS, flat)
    return flat


def _flatten(node: object, prefix: str, flat: dict[str, Values]) -> None:
    if isinstance(node, dict) and node:
        for name, value in node.items():
            _flatten(value, f"{prefix}{name}." if isinstance(value, dict) and value else f"{prefix}{name}", flat)
    else:
        flat[prefix] = (yaml.safe_dump(node, default_flow_style=True, width=10**9).removesuffix("...\n").strip(),)


def same_names(engine: str) -> Mapping[str, str]:
    """Return under which name the engine's renderer writes a flag that has several."""
    aliases = {
        "tp-size": "tensor-parallel-size",
        "tp": "tensor-parallel-size",
        "dp-size": "data-parallel-size",
        "dp": "data-parallel-size",
        "ep-size": "expert-parallel-size",
        "ep": "expert-parallel-size",
        "pp-size": "pipeline-parallel-size",
        "speculative-algo": "speculative-algorithm",
    }
    return aliases if engine.endswith("sglang") else {}


def equal_words(first: Values, second: Values) -> bool:
    return first == second or [_plain(word) for word in first] == [_plain(word) for word in second]


def _plain(word: str) -> object:
    """Read a word as YAML does: 0.90 is 0.9, JSON's spaces don't matter. Simulated acceptance is left out."""
    try:
        value = yaml.safe_load(word)
    except yaml.YAMLError:
        return word
    if isinstance(value, dict) and "num_speculative_tokens" in value:
        simulated = any(name in value for name in _SIMULATED)
        gone = (*_SIMULATED, *(("rejection_sample_method",) if simulated else ()))
        return {name: item for name, item in value.items() if name not in gone}
    return value
