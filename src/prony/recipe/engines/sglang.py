"""How SGLang's server is called, and what it tells of itself."""

from functools import cache

from prony.base.errors import ConfigError
from prony.recipe.deployment import EnvVar, SpecDecode
from prony.recipe.engines import telling
from prony.recipe.engines.engine import Engine, Render
from prony.recipe.engines.flags import Flag, argv_of
from prony.recipe.engines.shared import (
    HOST,
    PRONY,
    devices_of_node,
    draft_model_of,
    has,
    model_argument,
    sizes,
    unless_set,
)
from prony.recipe.engines.tables import table, version_in
from prony.recipe.intent import Intent, Rendered, RoleIntent, variables, workers
from prony.spec.point import RolePool

_TOPOLOGY = (
    *("tensor-parallel-size", "tp-size", "tp", "pipeline-parallel-size", "pp-size"),
    *("data-parallel-size", "dp-size", "dp", "expert-parallel-size", "ep-size", "ep", "enable-dp-attention"),
    *("decode-context-parallel-size", "attention-context-parallel-size", "attn-cp-size", "disaggregation-mode"),
)
OWNERS = {
    "model-path": "model.id",
    "model": "model.id",
    "served-model-name": "served_model",
    "host": PRONY,
    "port": PRONY,
    "enable-metrics": PRONY,
    "speculative-algorithm": "spec.method",
    "speculative-algo": "spec.method",
    "speculative-num-steps": "spec.steps",
    "speculative-eagle-topk": "spec.topk",
    "speculative-num-draft-tokens": "spec.draft_tokens",
    "speculative-draft-model-path": "spec.draft_model",
    "speculative-draft-model": "spec.draft_model",
    "disaggregation-transfer-backend": "kv_transfer",
    "disaggregation-bootstrap-port": PRONY,
    "enable-hierarchical-cache": "kv_offload",
    "hicache-ratio": "kv_offload.ratio",
    **dict.fromkeys(_TOPOLOGY, "topology"),
}
_ALGORITHMS = {"eagle": "EAGLE", "eagle3": "EAGLE3", "mtp": "EAGLE", "nextn": "NEXTN", "dspark": "DSPARK"}
_ALGORITHMS |= {"ngram": "NGRAM", "draft_model": "STANDALONE"}
# The first release that reads all three variables of simulated acceptance (seed 004's finding); one before it takes the
# length and draws a fixed token, so that the client sees no text.
FIRST_SIMULATED = (0, 5, 16)


@cache
def flags(image: str) -> tuple[Flag, ...]:
    """Return SGLang's flags as of an image's release."""
    return table("sglang", image).owned(OWNERS)


def render(intent: Intent, role: RoleIntent) -> Rendered:
    """Return the argv of one SGLang server."""
    called = ("{python}", "-m", "sglang.launch_server", "--model-path", model_argument(intent.model))
    named = ("--served-model-name", intent.served_model, "--host", HOST, "--port", "{port:http}", "--enable-metrics")
    words = (*called, *named, *engine_words(intent, role))
    boot = role.pool.role == "prefill"
    ports = ("http", "bootstrap") if boot else ("http",)
    booted = ("--disaggregation-bootstrap-port", "{port:bootstrap}") if boot else ()
    return Rendered((*words, *booted, *argv_of(role.args, flags(intent.image))), simulated(intent, role), ports)


def engine_words(intent: Intent, role: RoleIntent) -> tuple[str, ...]:
    """Return the words of the typed intent: those that Dynamo's SGLang worker takes too."""
    graphs = intent.graph_batch if "cuda-graph-max-bs" in {flag.name for flag in flags(intent.image)} else None
    newer = intent.graph_batch if graphs is None else None
    return (
        *parallel_words(role.pool),
        *unless_set(role, "context-length", intent.context),
        *(unless_set(role, "cuda-graph-max-bs", graphs) if not has(role, "cuda-graph-bs") else ()),
        *(unless_set(role, "cuda-graph-max-bs-decode", newer) if not has(role, "cuda-graph-bs-decode") else ()),
        *(_speculation(intent) if intent.spec else ()),
        *_offload(intent, role),
        *_transfer(intent, role),
    )


def parallel_words(pool: RolePool) -> tuple[str, ...]:
    """Return how a pool is spread. DP attention keeps TP and gives every device attention of its own."""
    dp = pool.tp * pool.dp if pool.dp_attention else pool.dp
    spread = sizes(
        (
            ("pipeline-parallel-size", pool.pp),
            ("data-parallel-size", dp),
            ("expert-parallel-size", pool.ep),
            ("decode-context-parallel-size", pool.dcp),
            ("attention-context-parallel-size", pool.pcp),
        )
    )
    return ("--tensor-parallel-size", str(pool.tp), *spread, *(("--enable-dp-attention",) if pool.dp_attention else ()))


def _speculation(intent: Intent) -> tuple[str, ...]:
    """Return drafting. Prefill drafts too where roles are apart: the drafter's KV must be there when decode begins."""
    spec = intent.spec
    assert spec is not None, "asked only where there is one"
    model = draft_model_of(intent)
    return (
        *("--speculative-algorithm", _ALGORITHMS[spec.method], "--speculative-num-steps", str(spec.steps)),
        *("--speculative-eagle-topk", str(spec.topk), "--speculative-num-draft-tokens", str(spec.draft_tokens)),
        *(("--speculative-draft-model-path", model) if model else ()),
    )


def simulated(intent: Intent, role: RoleIntent) -> tuple[EnvVar, ...]:
    """Return the three variables of simulated acceptance, for the roles that verify drafts.

    Raises ConfigError for an image whose release is known not to read all three.
    """
    spec: SpecDecode | None = intent.spec
    if spec is None or spec.acceptance_length is None or role.pool.role == "prefill":
        return ()
    release = version_in(intent.image)
    if release is not None and release < FIRST_SIMULATED:
        raise ConfigError(
            f"{intent.spec_place}: {intent.image} is older than the first SGLang that simulates acceptance as asked",
            allowed=f"SGLang {'.'.join(map(str, FIRST_SIMULATED))} or newer",
            fix="take a newer image: an older one silently honours a part of it",
        )
    return variables(
        SGLANG_SIMULATE_ACC_LEN=str(spec.acceptance_length),
        SGLANG_SIMULATE_ACC_METHOD="match-expected",
        SGLANG_SIMULATE_ACC_TOKEN_MODE="real-draft-token",
    )


def _offload(intent: Intent, role: RoleIntent) -> tuple[str, ...]:
    """Return the hierarchical cache: by its ratio to the device's pool, else by the host memory of a device."""
    offload = intent.offload
    if offload is None:
        return ()
    size: tuple[str, ...] = ()
    if offload.ratio is not None:
        size = ("--hicache-ratio", offload.ratio)
    elif not has(role, "hicache-size", "hicache-ratio"):
        if offload.dram_gb < 1:
            raise ConfigError(
                f"{offload.place}: neither a ratio nor host memory is known for KV offload",
                fix="add 'kv_offload: {ratio: …}', or give the runner its hardware",
            )
        size = ("--hicache-size", str(offload.dram_gb // devices_of_node(role.pool)))
    storage = ("--hicache-storage-backend", "mooncake") if offload.backend == "mooncake" else ()
    return ("--enable-hierarchical-cache", *size, *storage)


def _transfer(intent: Intent, role: RoleIntent) -> tuple[str, ...]:
    if not intent.disagg:
        return ()
    how = ("--disaggregation-transfer-backend", str(intent.kv_transfer))
    return ("--disaggregation-mode", role.pool.role, *how)


def _render_router(intent: Intent, role: RoleIntent) -> Rendered:
    called = ("{python}", "-m", "sglang_router.launch_router", "--host", HOST, "--port", "{port:http}")
    if intent.disagg:
        words: list[str] = ["--pd-disaggregation"]
        for one in workers(intent.pools, "prefill"):
            words += ["--prefill", f"{{url:{one}}}", f"{{port:{one}:bootstrap}}"]
        for one in workers(intent.pools, "decode"):
            words += ["--decode", f"{{url:{one}}}"]
    else:
        words = ["--worker-urls", *(f"{{url:{one}}}" for one in workers(intent.pools, "agg"))]
    return Rendered((*called, *words, *argv_of(role.args, router_flags())))


@cache
def router_flags() -> tuple[Flag, ...]:
    """Return the flags of SGLang's router."""
    owners = dict.fromkeys(("prefill", "decode", "worker-urls", "pd-disaggregation"), "topology")
    return table("sglang-router").owned({**owners, "host": PRONY, "port": PRONY})


ROUTERS: dict[str, Render] = {"sglang-router": _render_router}

SGLANG = Engine(
    name="sglang",
    flags=flags,
    render=render,
    roles=frozenset({"agg", "prefill", "decode"}),
    spec_methods=frozenset(_ALGORITHMS),  # type: ignore[arg-type]
    tokenizer="none",
    golden=True,
    offload_backends=frozenset({"hicache", "mooncake"}),
    kv_transfers=frozenset({"mooncake", "nixl", "mori", "ascend"}),
    routers=ROUTERS,
    router_flags={"sglang-router": router_flags},
    env_prefixes=("SGLANG_",),
    env=lambda image: table("sglang", image).env,
    telling=telling.SGLANG,
)
