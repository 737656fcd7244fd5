"""How vLLM's server is called, and what it tells of itself."""

from functools import cache

from prony.base.errors import ConfigError
from prony.recipe.deployment import SpecDecode
from prony.recipe.engines import telling
from prony.recipe.engines.engine import Engine, Render
from prony.recipe.engines.flags import Flag, argv_of
from prony.recipe.engines.pdrouter import PD_ROUTER_FLAGS, render_pd_router
from prony.recipe.engines.shared import (
    HOST,
    PRONY,
    devices_of_node,
    draft_model_of,
    has,
    json_argument,
    model_argument,
    sizes,
    unless_set,
)
from prony.recipe.engines.tables import table
from prony.recipe.intent import Intent, Rendered, RoleIntent, variables, workers
from prony.spec.point import RolePool

OWNERS = {
    "model": "model.id",
    "served-model-name": "served_model",
    "host": PRONY,
    "port": PRONY,
    "speculative-config": "spec.method",
    **dict.fromkeys(
        (
            *("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "enable-expert-parallel"),
            *("decode-context-parallel-size", "prefill-context-parallel-size"),
        ),
        "topology",
    ),
}
# KV connectors by the name of the transfer in a master config. `example` hands blocks over as files: for a laptop.
CONNECTORS = {
    "nixl": "NixlConnector",
    "mooncake": "MooncakeConnector",
    "mori": "MoRIIOConnector",
    "lmcache": "LMCacheConnectorV1",
    "example": "ExampleConnector",
}
_METHODS = {"eagle": "eagle", "eagle3": "eagle3", "mtp": "mtp", "nextn": "mtp", "dspark": "dspark", "ngram": "ngram"}
_METHODS["draft_model"] = "draft_model"


@cache
def flags(image: str) -> tuple[Flag, ...]:
    """Return vLLM's flags as of an image's release."""
    return table("vllm", image).owned(OWNERS)


def render(intent: Intent, role: RoleIntent) -> Rendered:
    """Return the argv of one vLLM server."""
    called = ("{python}", "-m", "vllm.entrypoints.openai.api_server", "--model", model_argument(intent.model))
    named = ("--served-model-name", intent.served_model, "--host", HOST, "--port", "{port:http}")
    words = (*called, *named, *engine_words(intent, role))
    side = ("http", "kv") if intent.kv_transfer == "nixl" and intent.disagg else ("http",)
    # NIXL's handshake listens on a port of its own.
    env = variables(VLLM_NIXL_SIDE_CHANNEL_PORT="{port:kv}") if "kv" in side else ()
    return Rendered((*words, *argv_of(role.args, flags(intent.image))), env=env, ports=side)


def engine_words(intent: Intent, role: RoleIntent) -> tuple[str, ...]:
    """Return the words of the typed intent: those that Dynamo's vLLM worker takes too."""
    return (
        *parallel_words(role.pool),
        *unless_set(role, "max-model-len", intent.context),
        *unless_set(role, "max-cudagraph-capture-size", intent.graph_batch),
        *(("--speculative-config", speculation(intent)) if intent.spec else ()),
        *_offload(intent, role),
        *_transfer(intent, role),
    )


def parallel_words(pool: RolePool) -> tuple[str, ...]:
    """Return how a pool is spread. With DP attention every device is a data-parallel rank of its own."""
    tp, dp = (1, pool.dp * pool.tp) if pool.dp_attention else (pool.tp, pool.dp)
    expert = ("--enable-expert-parallel",) if (pool.ep or 1) > 1 else ()
    spread = sizes(
        (
            ("pipeline-parallel-size", pool.pp),
            ("data-parallel-size", dp),
            ("decode-context-parallel-size", pool.dcp),
            ("prefill-context-parallel-size", pool.pcp),
        )
    )
    return ("--tensor-parallel-size", str(tp), *spread, *expert)


def speculation(intent: Intent) -> str:
    """Return the speculative config. A chain only; acceptance is the curve's where it is golden."""
    spec = intent.spec
    assert spec is not None, "asked only where there is one"
    if spec.topk != 1:
        raise ConfigError(f"{intent.spec_place}: vllm drafts chains", allowed="spec.topk: 1")
    config: dict[str, object] = {"method": _METHODS[spec.method], "num_speculative_tokens": spec.steps}
    if (model := draft_model_of(intent)) is not None:
        config["model"] = model
    own = {one.name: one.value for one in spec.options}
    return json_argument(**config, **_judging(spec), **{name: own[name] for name in own if name not in config})


def _judging(spec: SpecDecode) -> dict[str, object]:
    """Return how drafts are drawn and judged; simulated acceptance stands in the place of a way to judge."""
    drawn: dict[str, object] = {} if spec.draft_sample is None else {"draft_sample_method": spec.draft_sample}
    if spec.acceptance_length is not None:
        simulated = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": spec.acceptance_length}
        return {**drawn, **simulated}
    return drawn if spec.rejection is None else {**drawn, "rejection_sample_method": spec.rejection}


def _offload(intent: Intent, role: RoleIntent) -> tuple[str, ...]:
    """Return host memory for KV: vLLM's own pool by its size, others as a connector."""
    offload = intent.offload
    if offload is None or has(role, "kv-transfer-config", "kv-offloading-size"):
        return ()
    if offload.dram_gb < 1:
        raise ConfigError(
            f"{offload.place}: no host memory is known for KV offload", fix="give the runner its hardware"
        )
    if offload.backend in ("native", "lmcache"):
        return ("--kv-offloading-size", str(offload.dram_gb), "--kv-offloading-backend", offload.backend)
    per_rank = offload.dram_gb * 10**9 // devices_of_node(role.pool)
    extra = {"cpu_bytes_to_use_per_rank": per_rank} if offload.backend == "vllm-simple" else {}
    connector = {"vllm-simple": "SimpleCPUOffloadConnector", "mooncake": "MooncakeStoreConnector"}[offload.backend]
    config = json_argument(kv_connector=connector, kv_role="kv_both", kv_connector_extra_config=extra)
    return ("--kv-transfer-config", config)


def _transfer(intent: Intent, role: RoleIntent) -> tuple[str, ...]:
    """Return how prefill hands KV to decode. A recipe may say it itself, by the connector that the label means."""
    if not intent.disagg or intent.kv_transfer is None:
        return ()
    connector = CONNECTORS[intent.kv_transfer]
    said = next((arg for arg in role.args if arg.name == "kv-transfer-config"), None)
    if said is not None:
        if connector not in said.values[0]:
            raise ConfigError(
                f"{said.place}: kv-transfer-config names no {connector}, which '{intent.kv_transfer}' means",
                fix="mend kv-p2p-transfer in the master config or the recipe: a label must equal what runs",
            )
        return ()
    kv_role = "kv_producer" if role.pool.role == "prefill" else "kv_consumer"
    if intent.kv_transfer == "nixl":
        kv_role = "kv_both"
    extra = {"shared_storage_path": "{shared_dir}/kv"} if intent.kv_transfer == "example" else None
    config: dict[str, object] = {"kv_connector": connector, "kv_role": kv_role}
    return ("--kv-transfer-config", json_argument(**config, **({"kv_connector_extra_config": extra} if extra else {})))


def _render_vllm_router(intent: Intent, role: RoleIntent) -> Rendered:
    if intent.disagg:
        apart = [("--prefill", f"{{url:{one}}}") for one in workers(intent.pools, "prefill")]
        apart += [("--decode", f"{{url:{one}}}") for one in workers(intent.pools, "decode")]
        words = ("--vllm-pd-disaggregation", *(word for pair in apart for word in pair))
    else:
        words = ("--worker-urls", *(f"{{url:{one}}}" for one in workers(intent.pools, "agg")))
    called = ("{python}", "-m", "vllm_router.launch_router", "--host", HOST, "--port", "{port:http}")
    return Rendered((*called, *words, *argv_of(role.args, table("vllm-router").flags)))


ROUTERS: dict[str, Render] = {"vllm-router": _render_vllm_router, "prony-pd": render_pd_router}

VLLM = Engine(
    name="vllm",
    flags=flags,
    render=render,
    roles=frozenset({"agg", "prefill", "decode"}),
    spec_methods=frozenset({"draft_model", "dspark", "eagle", "eagle3", "mtp", "nextn", "ngram"}),
    tokenizer="vllm",
    golden=True,
    spec_options=True,
    offload_backends=frozenset({"native", "lmcache", "vllm-simple", "mooncake"}),
    kv_transfers=frozenset(CONNECTORS),
    routers=ROUTERS,
    router_flags={"vllm-router": lambda: table("vllm-router").flags, "prony-pd": lambda: PD_ROUTER_FLAGS},
    env_prefixes=("VLLM_",),
    env=lambda image: table("vllm", image).env,
    telling=telling.VLLM,
)
