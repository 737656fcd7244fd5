"""How ATOM's server is called, and what it tells of itself."""

from functools import cache

from prony.base.errors import ConfigError
from prony.recipe.engines import telling
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.flags import Flag, argv_of
from prony.recipe.engines.shared import (
    HOST,
    PRONY,
    draft_model_of,
    has,
    json_argument,
    model_argument,
    refuse,
    sizes,
    unless_set,
)
from prony.recipe.engines.tables import table
from prony.recipe.intent import Intent, Rendered, RoleIntent, workers
from prony.spec.point import RolePool

_TOPOLOGY = ("tensor-parallel-size", "data-parallel-size", "enable-expert-parallel", "enable-dp-attention")
OWNERS = {
    "model": "model.id",
    "served-model-name": "served_model",
    "host": PRONY,
    "server-port": PRONY,
    "port": PRONY,
    "method": "spec.method",
    "num-speculative-tokens": "spec.steps",
    **dict.fromkeys(("spec-decode-acceptance-length", "spec-decode-acceptance-rate"), "spec.acceptance"),
    **dict.fromkeys(_TOPOLOGY, "topology"),
}
_METHODS = {"mtp": "mtp", "nextn": "mtp", "eagle": "mtp", "eagle3": "eagle3", "dspark": "dspark"}
_CONNECTORS = {"mooncake": "mooncake", "mori": "moriio"}


@cache
def flags(image: str) -> tuple[Flag, ...]:
    """Return ATOM's flags."""
    return table("atom", image).owned(OWNERS)


def _render(intent: Intent, role: RoleIntent) -> Rendered:
    refuse(
        intent,
        "atom",
        pipeline_parallelism=role.pool.pp > 1,
        context_parallelism=role.pool.dcp > 1 or role.pool.pcp > 1,
    )
    called = ("{python}", "-m", "atom.entrypoints.openai_server", "--model", model_argument(intent.model))
    named = ("--served-model-name", intent.served_model, "--host", HOST, "--server-port", "{port:http}")
    words = (
        *(*called, *named, *_parallel(role.pool), *unless_set(role, "max-model-len", intent.context)),
        *(*_speculation(intent), *_transfer(intent, role), *argv_of(role.args, flags(intent.image))),
    )
    return Rendered(words, ports=("http", "handshake") if intent.disagg else ("http",))


def _parallel(pool: RolePool) -> tuple[str, ...]:
    switches = (("enable-expert-parallel", (pool.ep or 1) > 1), ("enable-dp-attention", bool(pool.dp_attention)))
    spread = sizes((("data-parallel-size", pool.dp),))
    return ("--tensor-parallel-size", str(pool.tp), *spread, *(f"--{name}" for name, on in switches if on))


def _speculation(intent: Intent) -> tuple[str, ...]:
    """Return drafting; a decode-side length pins acceptance (in tokens a step, the bonus token included)."""
    spec = intent.spec
    if spec is None:
        return ()
    if spec.topk != 1 or draft_model_of(intent) is not None:
        raise ConfigError(
            f"{intent.spec_place}: atom drafts chains with the checkpoint's own head",
            allowed="spec.topk: 1, spec.draft_model: self",
        )
    length = spec.acceptance_length
    pinned = () if length is None else ("--spec-decode-acceptance-length", str(length))
    return ("--method", _METHODS[spec.method], "--num-speculative-tokens", str(spec.steps), *pinned)


def _transfer(intent: Intent, role: RoleIntent) -> tuple[str, ...]:
    """Return how KV is handed over, or put into host memory: one connector, or both under one that holds several."""
    if has(role, "kv-transfer-config"):
        return ()
    parts: list[dict[str, object]] = []
    if intent.disagg:
        kv_role = "kv_producer" if role.pool.role == "prefill" else "kv_consumer"
        where = {"proxy_ip": HOST, "handshake_port": "{port:handshake}"}
        parts.append({"kv_role": kv_role, "kv_connector": _CONNECTORS[str(intent.kv_transfer)], **where})
    if intent.offload is not None:
        parts.append({"kv_role": "offload", "kv_connector": "lmcache_offload"})
    if not parts:
        return ()
    config = json_argument(**parts[0]) if len(parts) == 1 else json_argument(kv_connector="multi", connectors=parts)
    # The port is a number there: the quotes around its placeholder go.
    return ("--kv-transfer-config", config.replace('"{port:handshake}"', "{port:handshake}"))


def _render_mesh(intent: Intent, role: RoleIntent) -> Rendered:
    called = ("atomesh", "launch", "--host", HOST, "--port", "{port:http}", "--pd-disaggregation", "--backend", "atom")
    apart = [("--prefill", f"{{url:{one}}}") for one in workers(intent.pools, "prefill")]
    apart += [("--decode", f"{{url:{one}}}") for one in workers(intent.pools, "decode")]
    return Rendered((*called, *(word for pair in apart for word in pair), *argv_of(role.args)))


# The options of atomesh (ATOM's router) that its public launch examples use, 2026.
MESH_FLAGS = (
    Flag("policy", "text", "which worker is next", choices=("random", "round_robin", "cache_aware", "power_of_two")),
    Flag("prefill-policy", "text", "the same for prefill alone", choices=("random", "round_robin", "cache_aware")),
    Flag("decode-policy", "text", "the same for decode alone", choices=("random", "round_robin", "cache_aware")),
    Flag("dp-aware", "switch", "choose data-parallel ranks"),
    Flag("log-level", "text", "how much is logged", choices=("debug", "info", "warn", "error")),
    Flag("disable-health-check", "switch", "take workers for up"),
    Flag("disable-circuit-breaker", "switch", "ask workers that failed"),
    Flag("cache-threshold", "float", "share of a prefix that counts as cached", least=0, most=1),
)


ATOM = Engine(
    name="atom",
    flags=flags,
    render=_render,
    roles=frozenset({"agg", "prefill", "decode"}),
    spec_methods=frozenset(_METHODS),  # type: ignore[arg-type]
    tokenizer="none",
    golden=True,
    offload_backends=frozenset({"lmcache"}),
    kv_transfers=frozenset(_CONNECTORS),
    routers={"atomesh": _render_mesh},
    router_flags={"atomesh": lambda: MESH_FLAGS},
    env_prefixes=("ATOM_",),
    telling=telling.ATOM,
)
