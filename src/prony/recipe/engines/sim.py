"""How Prony's own simulated server is called."""

from prony.recipe.engines.engine import Engine
from prony.recipe.engines.flags import argv_of
from prony.recipe.engines.sim_flags import SIM_FLAGS
from prony.recipe.intent import Intent, Rendered, RoleIntent


def _render(intent: Intent, role: RoleIntent) -> Rendered:
    called = ("{python}", "-m", "prony.sim.server", "--host", "127.0.0.1", "--port", "{port:http}")
    return Rendered((*called, "--model", intent.served_model, *argv_of(role.args)))


SIM = Engine(
    name="sim",
    flags=lambda _image: SIM_FLAGS,
    render=_render,
    roles=frozenset({"agg"}),
    spec_methods=frozenset(),
    tokenizer="vllm",
    simulated=True,
)
