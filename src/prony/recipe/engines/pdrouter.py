"""How the router of our own before prefill and decode workers is called."""

from prony.recipe.engines.flags import Flag, argv_of
from prony.recipe.engines.shared import HOST, PRONY
from prony.recipe.intent import Intent, Rendered, RoleIntent, workers

PD_ROUTER_FLAGS = (
    Flag("host", "text", "address to listen on", default=HOST, owner=PRONY),
    Flag("port", "int", "port to listen on", required=True, owner=PRONY),
    Flag("prefill", "text", "URL of a prefill worker; can be repeated", repeats=True, owner="topology"),
    Flag("decode", "text", "URL of a decode worker; can be repeated", repeats=True, owner="topology"),
    Flag("timeout-s", "float", "seconds that a worker may take for one answer", default=600.0, least=0),
)


def render_pd_router(intent: Intent, role: RoleIntent) -> Rendered:
    """Return the argv of the router."""
    apart = [("--prefill", f"{{url:{one}}}") for one in workers(intent.pools, "prefill")]
    apart += [("--decode", f"{{url:{one}}}") for one in workers(intent.pools, "decode")]
    called = ("{prony_python}", "-m", "prony.recipe.engines.pd_router", "--host", HOST, "--port", "{port:http}")
    return Rendered((*called, *(word for pair in apart for word in pair), *argv_of(role.args)))
