"""Launch scripts, traced at every point of their key and factored into one recipe."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from prony.base.errors import ConfigError, PronyError
from prony.base.yamldoc import YamlMap, parse_yaml
from prony.recipe.catalogue import make_catalogue
from prony.recipe.engines.table import ENGINES
from prony.recipe.importers.factor import Factored, Leaves, factor
from prony.recipe.importers.launch import Import, Values
from prony.recipe.importers.srtslurm import spec_of, trt_args
from prony.recipe.importers.trace import Call, Trace, trace
from prony.recipe.importers.verify import equal_words, options_of, same_names, words_by_flag
from prony.recipe.importers.write import beyond_table, plain_value
from prony.recipe.labels import engine_of_framework
from prony.recipe.model import MAX_RULES, read_recipe
from prony.recipe.resolve import resolve
from prony.spec.point import FixedSeqLen, Point

_MARKS = {
    "sglang": ("sglang.launch_server", "sglang"),
    "vllm": ("vllm.entrypoints.openai.api_server", "vllm"),
    "trtllm": ("trtllm-serve",),
    "atom": ("atom.entrypoints.openai_server",),
}
_SHORT = {"-tp": "--tensor-parallel-size", "-dp": "--data-parallel-size", "-pp": "--pipeline-parallel-size"}
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
    if engine not in _MARKS or any(len(point.topology.pools) > 1 for point in points):
        raise ConfigError(
            f"{first.config_key}: scripts of {first.framework} are not traced here",
            allowed=f"one node, {', '.join(_MARKS)}",
            fix="import models-yaml or srt-slurm for roles that are apart",
        )
    root, found, kept, faults = _root_of(script), [], [], []
    for number, point in enumerate(points, 1):
        traced = trace(script, root, environment(point), limit_s)
        call = _server_call(traced, engine)
        if call is None:
            faults.append(f"{script} at {point.label}: {_why(traced)}")
        else:
            kept.append(point)
            found.append(_leaves(call, engine))
        show(f"{number} of {len(points)} points traced")
    if not kept:
        raise ConfigError(f"{script}: no point starts a server: {faults[0]}", fix="run it by hand with bash -x")
    factored = factor(kept, found)
    text = _text(script, first.config_key, engine, first.image, factored)
    faults += list(_verified(script, text, kept, found))
    notes = tuple(f"{name} varies in a way that no field tells; it has a rule per point" for name in factored.literal)
    return Import(first.config_key, text, first, notes, tuple(faults))


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
        "HF_HUB_CACHE": "/tmp/hub",
    }


def _root_of(script: Path) -> Path:
    """Return the folder that a script may read: its repository, else its own folder."""
    whole = script.resolve()
    return next((folder for folder in whole.parents if (folder / ".git").exists()), whole.parent)


def _why(traced: Trace) -> str:
    said = traced.said.strip().splitlines()[-1:] or ["silently"]
    how = "did not end within its time limit" if traced.code is None else f"ended with {traced.code}"
    return f"started no server that is known; it {how}: {said[0][:200]}"


def _server_call(traced: Trace, engine: str) -> Call | None:
    marks = _MARKS[engine]
    for call in traced.calls:
        program = call.argv[0]
        if program in marks and any(word in ("serve", "launch_server") for word in call.argv):
            return call
        if any(word in marks for word in call.argv[1:]):
            return call
    return None


def _leaves(call: Call, engine: str) -> Leaves:
    """Return what a call says, as leaves of a recipe: flags, environment, drafting, options files."""
    flags = _flags(call, engine)
    leaves: dict[tuple[str, ...], Any] = {}
    options = flags.pop("extra_llm_api_options", flags.pop("config", ())) if engine == "trtllm" else ()
    plain: dict[str, Any] = {name: plain_value(values) for name, values in flags.items()}
    if options and options[0] in call.files:
        document = parse_yaml(call.files[options[0]], options[0])
        flags |= dict(trt_args(document))
        plain |= {name: value for name, value in document.items() if name == "speculative_config"}
        if document.get("enable_attention_dp"):
            flags["config.enable_attention_dp"] = ("true",)
    for name, values in flags.items():
        leaves["roles", "agg", "args", name] = values
    for name, value in call.env.items():
        if name not in _SCRIPT_OWN and not name.startswith((*_SIMULATED, *_CLIENT)):
            leaves["env", name] = value
    for name, value in (_spec(engine, plain, flags) or {}).items():
        leaves["spec", name] = value
    return leaves


def _flags(call: Call, engine: str) -> dict[str, Values]:
    words: list[str] = []
    for word in call.argv:
        name, equals, value = word.partition("=")
        words += [_SHORT.get(name, name), value] if word.startswith("-") and equals else [_SHORT.get(word, word)]
    last = max(index for index, word in enumerate(words) if word in (*_MARKS[engine], "serve", "launch_server"))
    return words_by_flag(tuple(words[last + 1 :]))


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


def _verified(script: Path, text: str, points: Sequence[Point], found: Sequence[Leaves]) -> Iterator[str]:
    """Yield what the recipe gives otherwise than was traced."""
    key = points[0].config_key
    try:
        recipe = read_recipe(parse_yaml(text, f"{key}.yaml"), key)
    except PronyError as error:
        more = f" (a recipe has at most {MAX_RULES} rules: split the key)" if "rules" in error.message else ""
        yield f"{script}: {error.message}{more}"
        return
    catalogue = make_catalogue([recipe])
    for point, leaves in zip(points, found, strict=True):
        try:
            deployment = resolve(catalogue, point, "eval")
        except PronyError as error:
            yield f"{script} at {point.label}: {error.message}"
            continue
        role = deployment.roles[0]
        actual, env = words_by_flag(role.argv) | options_of(role), {one.name: one.value for one in role.env}
        yield from _differences(f"{script} at {point.label}", leaves, actual, env, deployment.engine, point.image)


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
