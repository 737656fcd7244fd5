"""Launch scripts, traced at every point of their key and factored into one recipe."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
import yaml

from prony.base.errors import ConfigError, PronyError
from prony.base.yamldoc import YamlMap, parse_yaml
from prony.recipe.catalogue import Catalogue, make_catalogue
from prony.recipe.engines.table import ENGINES
from prony.recipe.importers.commandline import MODULES, begins, environment_of, read_command
from prony.recipe.importers.factor import Factored, Leaves, factor
from prony.recipe.importers.labelled import acceptance_differs, other_model, simulated_length, unasked
from prony.recipe.importers.launch import Import, Values
from prony.recipe.importers.srtslurm import spec_of, trt_args
from prony.recipe.importers.trace import Call, Trace, trace
from prony.recipe.importers.verify import equal_words, options_of, same_names, words_by_flag
from prony.recipe.importers.write import beyond_table, plain_value
from prony.recipe.labels import engine_of_framework
from prony.recipe.model import MAX_RULES, read_recipe
from prony.recipe.resolve import resolve
from prony.spec.compat.expand import lengths_name
from prony.spec.point import FixedSeqLen, KvOffload, Point

_AT_ONCE = 4
_SIMULATED = ("SGLANG_SIMULATE_ACC_", "TLLM_SPEC_DECODE_FORCE")
_PLACES = ("model.id", "served_model", "prony itself")
_SCRIPT_OWN = frozenset({"MODEL_PATH", "SERVER_PID", "EVAL_FRAMEWORK", "RESULT_DIR", "PYTHONDONTWRITEBYTECODE"})
_CLIENT = ("AIPERF_", "SWEBENCH_", "EVAL_", "SPEEDBENCH_", "AGENTIC_")


def import_script(script: Path, points: Sequence[Point], limit_s: float, show: Callable[[str], None]) -> Import:
    """Trace a script at every point of one key; return the recipe, verified there. Raises ConfigError, LaunchError."""
    if not script.is_file():
        raise ConfigError(f"{script}: no such file", fix="check the path")
    first = points[0]
    engine = engine_of_framework(first.framework)
    if engine not in MODULES or any(len(point.topology.pools) > 1 for point in points):
        raise ConfigError(
            f"{first.config_key}: scripts of {first.framework} are not traced here",
            allowed=f"one node, {', '.join(MODULES)}",
            fix="import models-yaml or srt-slurm for roles that are apart",
        )
    root, found, kept, faults = _root_of(script), [], [], []
    for point, traced in _traces(script, root, points, limit_s, show):
        call = next((call for call in traced.calls if begins(call.argv, engine) is not None), None)
        try:
            launch = None if call is None else _launch(call, engine, point)
        except (PronyError, ValueError, LookupError, TypeError) as error:
            faults.append(f"{script} at {point.label}: its server's command cannot be read: {_told(error)}")
            continue
        if launch is None:
            faults.append(f"{script} at {point.label}: {_why(traced)}")
        else:
            kept.append(point)
            found.append(launch)
    if not kept:
        raise ConfigError(f"{script}: no point starts a server: {faults[0]}", fix="run it by hand with bash -x")
    factored = factor(kept, [launch.leaves for launch in found])
    text = _text(script, first.config_key, engine, first.image, factored)
    faults += list(_verified(script, text, kept, found))
    notes = tuple(f"{name} varies in a way that no field tells; it has a rule per point" for name in factored.literal)
    return Import(first.config_key, text, first, notes, tuple(faults))


def _traces(
    script: Path, root: Path, points: Sequence[Point], limit_s: float, show: Callable[[str], None]
) -> Iterator[tuple[Point, Trace]]:
    """Yield how the script ran at each point, several at a time: most of the time they wait."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        runs = pool.map(lambda point: trace(script, root, environment(point), limit_s), points)
        for number, (point, traced) in enumerate(zip(points, runs, strict=True), 1):
            yield point, traced
            show(f"{number} of {len(points)} points traced")


def environment(point: Point) -> dict[str, str]:
    """Return what the reference's workflow gives a single-node script."""
    pool, work = point.topology.pools[0], point.workload
    fixed = work if isinstance(work, FixedSeqLen) else None
    isl, osl = (fixed.isl, fixed.osl) if fixed else (0, 0)
    offload = point.kv_offload
    return {
        "MODEL": point.model,
        "MODEL_PREFIX": point.model_prefix,
        "IMAGE": point.image,
        "PORT": "8888",
        "FRAMEWORK": point.framework,
        "PRECISION": point.precision,
        "CONC": str(point.concurrency),
        "ISL": str(isl),
        "OSL": str(osl),
        "MAX_MODEL_LEN": str(isl + osl + 256 if fixed else 0),
        "TP": str(pool.tp),
        "PP_SIZE": str(pool.pp),
        "EP_SIZE": str(pool.ep or 1),
        "DCP_SIZE": str(pool.dcp),
        "PCP_SIZE": str(pool.pcp),
        "DP_ATTENTION": str(bool(pool.dp_attention)).lower(),
        "DISAGG": "false",
        "SPEC_DECODING": point.spec_decoding,
        "RANDOM_RANGE_RATIO": "0.8",
        "RESULT_FILENAME": "result",
        "RUN_EVAL": "false",
        "EVAL_ONLY": "false",
        "RESULT_DIR": "/workspace/results",
        "DURATION": "3600",
        "SCENARIO_TYPE": work.kind,
        "IS_AGENTIC": "0" if fixed else "1",
        "GPU_COUNT": str(pool.gpus),
        "KV_OFFLOADING": offload.mode,
        "KV_OFFLOAD_BACKEND": offload.backend or "",
        "TOTAL_CPU_DRAM_GB": str(point.cpu_dram_gb),
        "RUNNER_TYPE": point.runner,
        "RUNNER_NAME": f"{point.runner.removeprefix('cluster:')}_0",
        "EXP_NAME": f"{point.model_prefix}_{lengths_name(isl, osl) if fixed else 'agentic'}",
        "SCENARIO_SUBDIR": "fixed_seq_len/" if fixed else "agentic/",
        "RECIPE_FINGERPRINT": "0" * 16,
        "KV_OFFLOAD_BACKEND_METADATA": _metadata(offload),
        "KV_P2P_TRANSFER": point.kv_transfer or "",
        "HF_TOKEN": "none",
        "HF_HUB_CACHE": "/tmp/hub",
    }


def _told(error: Exception) -> str:
    told = error.message if isinstance(error, PronyError) else str(error)
    return f"{told} is missing" if isinstance(error, KeyError) else told


def _metadata(offload: KvOffload) -> str:
    version = {"version": offload.backend_version} if offload.backend_version else {}
    return orjson.dumps({"name": offload.backend, **version}).decode() if offload.backend else ""


def _root_of(script: Path) -> Path:
    """Return the folder that a script may read: its repository, else its own folder, or the one above if it says so."""
    whole = script.resolve()
    own = whole.parent.parent if "../" in whole.read_text(encoding="utf-8", errors="replace") else whole.parent
    return next((folder for folder in whole.parents if (folder / ".git").exists()), own)


def _why(traced: Trace) -> str:
    said = traced.said.strip().splitlines()[-1:] or ["silently"]
    how = "did not end within its time limit" if traced.code is None else f"ended with {traced.code}"
    return f"started no server that is known; it {how}: {said[0][:200]}"


@dataclass(frozen=True)
class _Launch:
    """What one call says: leaves of a recipe, the model it names, the acceptance length that it simulates.

    drafting: how options files say what became the recipe's `spec`.
    """

    leaves: Leaves
    drafting: Mapping[str, Values]
    model: str | None
    length: float | None


def _launch(call: Call, engine: str, point: Point) -> _Launch:
    """Read a call: flags, environment, drafting, options files. Raises ValueError for words that are no flags."""
    model, flags = read_command(call.argv, engine, point.image)
    leaves: dict[tuple[str, ...], Any] = {}
    drafting: dict[str, Values] = {}
    options = flags.pop("extra_llm_api_options", flags.pop("config", ())) if engine == "trtllm" else ()
    plain: dict[str, Any] = {name: plain_value(values) for name, values in flags.items()}
    if options and options[0] in call.files:
        document = parse_yaml(call.files[options[0]], options[0])
        flags |= dict(trt_args(document))
        plain |= {name: value for name, value in document.items() if name == "speculative_config"}
        drafting = dict(trt_args(document.get("speculative_config") or {}, "config.speculative_config."))
        if document.get("enable_attention_dp"):
            flags["config.enable_attention_dp"] = ("true",)
    for name, values in flags.items():
        leaves["roles", "agg", "args", name] = values
    for name, value in environment_of(call.argv, call.env, engine).items():
        if name not in _SCRIPT_OWN and not name.startswith((*_SIMULATED, *_CLIENT)):
            leaves["env", name] = value
    for name, value in (_spec(engine, plain, flags) or {}).items():
        leaves["spec", name] = value
    named = next((flags[name][0] for name in ("model", "model-path") if flags.get(name)), model)
    return _Launch(leaves, drafting, named, simulated_length(flags, environment_of(call.argv, call.env, engine)))


def _spec(engine: str, plain: Mapping[str, Any], flags: Mapping[str, Values]) -> dict[str, Any] | None:
    if engine == "atom":
        steps = flags.get("num-speculative-tokens", ("1",))[0]
        return {"method": flags["method"][0], "steps": int(steps)} if "method" in flags else None
    return spec_of(engine, cast(YamlMap, plain))


def _text(script: Path, key: str, engine: str, image: str, factored: Factored) -> str:
    owned = {flag.name for flag in ENGINES[engine].flags(image) if flag.owner}
    owned |= {other for other, name in same_names(engine).items() if name in owned}
    plain: dict[str, Any] = {"schema": 1, "engine": engine, "keys": [key], "python": "python3"}
    parts = (factored.base, *(leaves for _, leaves in factored.rules))
    every = [{name: value for name, value in _args(leaves) if name not in owned} for leaves in parts]
    if beyond := beyond_table(engine, image, every):
        plain["flags"] = beyond
    plain |= _nested(factored.base, owned)
    rules = [{"when": when, **_nested(leaves, owned)} for when, leaves in factored.rules]
    rules = [rule for rule in rules if len(rule) > 1]
    if rules:
        plain["rules"] = rules
    head = f"# Imported from {script.name}, traced at every point of {key}.\n"
    return head + yaml.safe_dump(plain, sort_keys=False, width=110)


def _args(leaves: Leaves) -> Iterator[tuple[str, Values]]:
    for path, value in leaves.items():
        if path[:3] == ("roles", "agg", "args") and value is not None:
            yield path[3], value if isinstance(value, tuple) else (str(value),)


def _nested(leaves: Leaves, owned: set[str]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in leaves.items():
        if path[0] == "roles" and (path[-1] in owned or path[-1] == "config.enable_attention_dp"):
            continue
        here = nested
        for part in path[:-1]:
            here = here.setdefault(part, {})
        here[path[-1]] = plain_value(value) if isinstance(value, tuple) else value
    return nested


def _verified(script: Path, text: str, points: Sequence[Point], found: Sequence[_Launch]) -> Iterator[str]:
    """Yield what the recipe gives otherwise than was traced."""
    key = points[0].config_key
    try:
        recipe = read_recipe(parse_yaml(text, f"{key}.yaml"), key)
    except PronyError as error:
        more = f" (a recipe has at most {MAX_RULES} rules: split the key)" if "rules" in error.message else ""
        yield f"{script}: {error.message}{more}"
        return
    catalogue = make_catalogue([recipe])
    for point, launch in zip(points, found, strict=True):
        try:
            deployment = resolve(catalogue, point, "eval")
        except PronyError as error:
            yield f"{script} at {point.label}: {error.message}"
            continue
        role = deployment.roles[0]
        actual, env = words_by_flag(role.argv) | options_of(role), {one.name: one.value for one in role.env}
        place, image = f"{script} at {point.label}", point.image
        leaves = dict(launch.leaves)
        leaves.update((("roles", "agg", "args", name), value) for name, value in launch.drafting.items())
        yield from _differences(place, leaves, actual, env, deployment.engine, image)
        same = same_names(deployment.engine)
        said = {same.get(path[-1], path[-1]): value for path, value in leaves.items() if path[0] == "roles"}
        for flag in unasked(said, actual, deployment.engine, image):
            yield f"{place}: nothing was found, {flag} is given: the point's label asks for it"
        if other := other_model(launch.model, point.model):
            yield f"{place}: it serves {other}, the point says {point.model}"
        yield from _acceptance(place, catalogue, point, launch.length)


def _acceptance(place: str, catalogue: Catalogue, point: Point, length: float | None) -> Iterator[str]:
    """Yield how acceptance under load is not what the script says. Evals are real whatever it says."""
    if point.eval_only or point.spec_decoding == "none":
        return
    try:
        differs = acceptance_differs(length, resolve(catalogue, point).spec)
    except PronyError as error:
        differs = error.message
    if differs:
        yield f"{place}: {differs}"


def _differences(
    place: str, leaves: Leaves, actual: Mapping[str, Values], env: Mapping[str, str], engine: str, image: str
) -> Iterator[str]:
    owners, names = {flag.name: flag.owner for flag in ENGINES[engine].flags(image)}, same_names(engine)
    for path, value in leaves.items():
        if path[0] == "env" and env.get(path[1]) != value:
            yield f"{place}: {path[1]}={value} was found, {env.get(path[1])} is set"
        if path[0] != "roles":
            continue
        name = path[-1]
        if owners.get(name) in _PLACES or (owners.get(name) == "topology" and value == ("1",)):
            continue
        given = actual.get(names.get(name, name), actual.get(name))
        if given is None or not equal_words(value, given):
            yield f"{place}: {name} {' '.join(value)} was found, {' '.join(given) if given else 'nothing'} is given"
