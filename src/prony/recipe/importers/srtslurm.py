"""srt-slurm recipes (YAML, version 1): one launch each, its roles smeared over `resources` and `backend`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from prony.base.errors import ConfigError
from prony.base.yamldoc import YamlMap
from prony.recipe.importers.launch import Found, FoundRole, Values
from prony.spec.point import KvOffload, RoleName, RolePool

_ROLES: dict[str, RoleName] = {"aggregated": "agg", "prefill": "prefill", "decode": "decode"}
_WORKERS = {"agg": "agg_workers", "prefill": "prefill_workers", "decode": "decode_workers"}
_GPUS = {"agg": "gpus_per_agg", "prefill": "gpus_per_prefill", "decode": "gpus_per_decode"}
_ENVIRONMENT = {"agg": "aggregated_environment", "prefill": "prefill_environment", "decode": "decode_environment"}
_SIMULATED = ("SGLANG_SIMULATE_ACC_", "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS")
_CONNECTORS = (("Nixl", "nixl"), ("MoRIIO", "mori"), ("Mooncake", "mooncake"), ("LMCache", "lmcache"))
_TRT_SPREAD = ("tensor_parallel_size", "moe_expert_parallel_size", "pipeline_parallel_size", "enable_attention_dp")
_TYPED_SPEC = frozenset(
    {
        *("method", "num_speculative_tokens", "model", "draft_sample_method", "rejection_sample_method"),
        "synthetic_acceptance_length",
    }
)
_NOT_OURS = ("sbatch_directives", "srun_options", "slurm", "infra", "health_check", "benchmark", "setup_script")


def read_srt_slurm(document: YamlMap) -> Found:
    """Return the launch of a recipe. Raises ConfigError for what has no place in one launch."""
    if "base" in document or any(name.startswith("override_") for name in document):
        raise ConfigError(
            f"{document.file}: base and overrides are several launches", fix="expand it with srtctl first"
        )
    backend, resources = _map(document, "backend"), _map(document, "resources")
    kind = _kind(document, backend)
    config = _map(backend, f"{kind}_config")
    roles = tuple(_role(document, name, config[name], kind, backend, resources) for name in _ROLES if name in config)
    if not roles:
        raise ConfigError(
            f"{document.file}: backend.{kind}_config has no role", allowed=", ".join(_ROLES), fix="add one of them"
        )
    router = _map(document, "frontend") if "frontend" in document else {}
    dynamo = router.get("type") == "dynamo"
    return Found(
        name=str(document.get("name", "")),
        place=document.file,
        engine=f"dynamo-{kind}" if dynamo else kind,
        image=str(_map(document, "model").get("container", "")),
        model=_model(document),
        roles=roles,
        spec=_spec(kind, config),
        router="dynamo-router" if dynamo else "vllm-router" if kind == "vllm" else "sglang-router",
        router_args={name: words(value) for name, value in (router.get("args") or {}).items()},
        router_env={name: str(value) for name, value in (router.get("env") or {}).items()},
        kv_transfer=_transfer(kind, config) if len(roles) > 1 else None,
        offload=_offload(kind, config),
        offload_ratio=_ratio(config),
        notes=tuple(_notes(document, backend)),
    )


def _map(document: Mapping[str, Any], name: str) -> YamlMap:
    found = document.get(name)
    if not isinstance(found, YamlMap):
        place = getattr(document, "file", "")
        raise ConfigError(f"{place}: '{name}' is no map", allowed=", ".join(map(str, document)))
    return found


def _kind(document: YamlMap, backend: YamlMap) -> str:
    named = backend.get("type") or next((n.removesuffix("_config") for n in backend if n.endswith("_config")), "")
    if named not in ("sglang", "vllm", "trtllm"):
        raise ConfigError(f"{document.file}: backend.type '{named}'", allowed="sglang, vllm, trtllm")
    return str(named)


def _model(document: YamlMap) -> str:
    """Return the checkpoint: what identity says, else what is served, else the alias of a path."""
    identity = document.get("identity") or {}
    named = (identity.get("model") or {}).get("repo")
    served = [node["served-model-name"] for node in _maps(document) if isinstance(node.get("served-model-name"), str)]
    return str(named or next(iter(served), None) or _map(document, "model").get("path", ""))


def _maps(node: Any) -> Iterator[YamlMap]:
    if isinstance(node, YamlMap):
        yield node
        for value in node.values():
            yield from _maps(value)


def words(value: Any) -> Values:
    """Return a YAML value as the words of a flag. False is told apart from bare flags by its word."""
    if value is True:
        return ()
    if isinstance(value, list):
        return tuple(str(item).lower() if isinstance(item, bool) else str(item) for item in value)
    if isinstance(value, dict):
        return (json.dumps(value, separators=(",", ":")),)
    return ("null" if value is None else str(value).lower() if isinstance(value, bool) else str(value),)


def _role(document: YamlMap, name: str, config: YamlMap, kind: str, backend: YamlMap, resources: YamlMap) -> FoundRole:
    role = _ROLES[name]
    args = dict(trt_args(config)) if kind == "trtllm" else {key: words(value) for key, value in config.items()}
    gone = [key for key, values in args.items() if values == ("false",) and kind != "trtllm"]
    env = {**(document.get("environment") or {}), **(backend.get(_ENVIRONMENT[role]) or {})}
    plain = {key: str(value) for key, value in env.items() if not key.startswith(_SIMULATED)}
    pool = _pool(role, kind, config, int(resources.get(_WORKERS[role]) or 1))
    said = resources.get(_GPUS[role])
    if said is not None and int(said) != pool.gpus // pool.replicas:
        raise ConfigError(
            f"{document.file}: {_GPUS[role]} is {said}, the flags of {name} use {pool.gpus // pool.replicas} devices",
            fix="mend one of them: a label must equal what runs",
        )
    nodes = resources.get(f"{role}_nodes")
    pool = pool.model_copy(update={"nodes": int(nodes) if nodes else None})
    return FoundRole(pool, {key: values for key, values in args.items() if key not in gone}, plain)


def trt_args(config: Mapping[str, Any], prefix: str = "config.") -> Iterator[tuple[str, Values]]:
    """Yield TensorRT-LLM's options as dotted arguments; lists as one YAML text. What is spread is the point's."""
    for name, value in config.items():
        if prefix == "config." and (name in _TRT_SPREAD or name == "speculative_config"):
            continue
        if name == "backend" and prefix == "config.cache_transceiver_config.":
            continue
        if isinstance(value, dict) and value:
            yield from trt_args(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield f"{prefix}{name}", (json.dumps(value),)
        else:
            yield f"{prefix}{name}", ("true",) if value is True else words(value)


def _pool(role: RoleName, kind: str, config: Mapping[str, Any], workers: int) -> RolePool:
    """Return how a role is spread, from its flags."""

    def size(*names: str) -> int:
        return next((int(config[name]) for name in names if config.get(name)), 1)

    if kind == "trtllm":
        tp, attention = size("tensor_parallel_size"), bool(config.get("enable_attention_dp"))
        ep, pp = size("moe_expert_parallel_size"), size("pipeline_parallel_size")
        return RolePool(role=role, replicas=workers, tp=tp, pp=pp, ep=ep, dp_attention=attention)
    tp = size("tensor-parallel-size", "tp-size", "tp")
    dp, pp = size("data-parallel-size", "dp-size", "dp"), size("pipeline-parallel-size", "pp-size")
    dcp = size("decode-context-parallel-size")
    if kind == "sglang":
        attention = bool(config.get("enable-dp-attention"))
        ep = size("expert-parallel-size", "ep-size", "ep")
        rest = dp // tp if attention and dp > tp else 1 if attention else dp
        return RolePool(role=role, replicas=workers, tp=tp, pp=pp, dp=rest, dcp=dcp, ep=ep, dp_attention=attention)
    ranks = tp == 1 and dp > 1
    pcp, expert = size("prefill-context-parallel-size"), bool(config.get("enable-expert-parallel"))
    wide = dp if ranks else tp
    return RolePool(
        role=role,
        replicas=workers,
        tp=wide,
        pp=pp,
        dp=1 if ranks else dp,
        dcp=dcp,
        pcp=pcp,
        ep=wide if expert else 1,
        dp_attention=ranks,
    )


def _spec(kind: str, config: YamlMap) -> dict[str, Any] | None:
    """Return drafting as a recipe says it: that of decode, or of the only role."""
    for name in ("decode", "aggregated", "prefill"):
        role = config.get(name)
        if isinstance(role, YamlMap) and (found := spec_of(kind, role)):
            return found
    return None


def spec_of(kind: str, role: YamlMap) -> dict[str, Any] | None:
    if kind == "vllm" and isinstance(role.get("speculative-config"), str):
        said = orjson.loads(role["speculative-config"])
        found: dict[str, Any] = {"method": said["method"], "steps": said["num_speculative_tokens"]}
        rejection = said.get("rejection_sample_method")
        found |= {"draft_model": said["model"]} if "model" in said else {}
        found |= {"draft_sample": said["draft_sample_method"]} if "draft_sample_method" in said else {}
        own = {key: value for key, value in said.items() if key not in _TYPED_SPEC}
        found |= {"options": own} if own else {}
        return found | ({"rejection": rejection} if rejection not in (None, "synthetic") else {})
    if kind == "sglang" and "speculative-num-steps" in role:
        name = str(role.get("speculative-algorithm") or role.get("speculative-algo") or "EAGLE").lower()
        found = {"method": name, "steps": role["speculative-num-steps"]}
        topk = role.get("speculative-eagle-topk")
        found |= {"topk": topk} if topk not in (None, 1) else {}
        model = role.get("speculative-draft-model-path")
        return found | ({"draft_model": model} if model else {})
    said = role.get("speculative_config")
    if kind == "trtllm" and isinstance(said, YamlMap) and "num_nextn_predict_layers" in said:
        return {"method": "mtp", "steps": said["num_nextn_predict_layers"]}
    return None


def _transfer(kind: str, config: YamlMap) -> str | None:
    role = config.get("decode") or {}
    if kind == "sglang":
        return str(role.get("disaggregation-transfer-backend") or "mooncake")
    if kind == "trtllm":
        return str((role.get("cache_transceiver_config") or {}).get("backend", "UCX")).lower()
    text = str(role.get("kv-transfer-config") or "Nixl")
    return next((label for word, label in _CONNECTORS if word in text), "nixl")


def _offload(kind: str, config: YamlMap) -> KvOffload:
    """Return KV offload as a label: SGLang's hierarchical cache."""
    on = kind == "sglang" and any(
        isinstance(role, YamlMap) and role.get("enable-hierarchical-cache") for role in config.values()
    )
    return KvOffload(mode="dram", backend="hicache") if on else KvOffload()


def _ratio(config: YamlMap) -> str | None:
    said = [
        str(role["hicache-ratio"]) for role in config.values() if isinstance(role, YamlMap) and "hicache-ratio" in role
    ]
    return said[0] if said else None


def _notes(document: YamlMap, backend: YamlMap) -> Iterator[str]:
    """Yield what a recipe does not hold, and where it belongs."""
    if others := [name for name in _NOT_OURS if name in document]:
        yield f"{', '.join(others)}: a site's, a load's or a scheduler's business"
    if "dynamo" in document:
        yield f"dynamo {dict(document['dynamo'])} (the image should hold it; a patch if it does not)"
    known = {"type", *(f"{kind}_config" for kind in ("sglang", "vllm", "trtllm")), *_ENVIRONMENT.values()}
    if others := [f"backend.{name}" for name, value in backend.items() if name not in known and value is not None]:
        yield f"{', '.join(others)}: no part of a launch recipe; set it at the site, or as a flag if the engine has one"
    simulated = [name for node in _maps(document) for name in node if str(name).startswith(_SIMULATED)]
    if simulated:
        yield "simulated acceptance typed by hand (it comes from the committed curve)"
