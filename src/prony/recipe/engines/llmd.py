"""How llm-d serves: vLLM's servers with NIXL between them, its routing sidecar and scheduler before them."""

from dataclasses import replace

from prony.recipe.engines import vllm
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.flags import Flag, argv_of
from prony.recipe.engines.shared import PRONY
from prony.recipe.intent import Intent, Rendered, RoleIntent, workers

# The sidecar's options (llm-d-routing-sidecar, 2026) that concern one pair of workers.
SIDECAR_FLAGS = (
    Flag("port", "int", "port to listen on", owner=PRONY),
    Flag("vllm-port", "int", "port of the decode worker", owner="topology"),
    Flag("connector", "text", "how KV is handed over", owner="kv_transfer"),
    Flag("secure-proxy", "text", "serve TLS", choices=("true", "false")),
    Flag("prefiller-sampling-n", "int", "prefill workers to choose from", least=1),
)


def _render_sidecar(intent: Intent, role: RoleIntent) -> Rendered:
    decode = workers(intent.pools, "decode") or workers(intent.pools, "agg")
    connector = "nixlv2" if intent.kv_transfer == "nixl" else str(intent.kv_transfer or "nixlv2")
    words = ("pd-sidecar", "--port", "{port:http}", "--vllm-port", f"{{port:{decode[0]}:http}}")
    return Rendered((*words, "--connector", connector, *argv_of(role.args)))


LLMD_VLLM: Engine = replace(
    vllm.VLLM,
    name="llmd-vllm",
    routers={"llm-d-router": _render_sidecar, **vllm.ROUTERS},
    router_flags={"llm-d-router": lambda: SIDECAR_FLAGS, **vllm.VLLM.router_flags},
    kv_transfers=frozenset({"nixl"}),
)
