"""How llama.cpp's server is called."""

from prony.base.errors import ConfigError
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.flags import argv_of
from prony.recipe.engines.llamacpp_flags import LLAMACPP_FLAGS
from prony.recipe.intent import Intent, RoleIntent, SpecIntent


def _render(intent: Intent, role: RoleIntent) -> tuple[str, ...]:
    if not intent.model.files:
        raise ConfigError(f"{intent.place}: llamacpp needs a file to serve", fix="add model.location and model.files")
    if role.pool.gpus != 1:
        raise ConfigError(
            f"{intent.place}: llamacpp serves one device here, the point asks for {role.pool.gpus}",
            allowed="tp, pp, pcp, dp and replicas of 1",
            fix="mend the search space in the master config: a label must equal what runs",
        )
    model = "{model_dir}/" + intent.model.files[0].name
    return (
        *("{python}", "-m", "prony.recipe.engines.llamacpp_server", "--model", model),
        *("--host", "127.0.0.1", "--port", "{port:http}", "--alias", intent.served_model, "--metrics"),
        *(_drafting(intent.spec, model) if intent.spec else ()),
        *argv_of(role.args),
    )


def _drafting(spec: SpecIntent, model: str) -> tuple[str, ...]:
    if spec.draft_model != "self":
        raise ConfigError(
            f"{spec.place}: llamacpp can't draft with '{spec.draft_model}'", allowed="spec.draft_model: self"
        )
    if spec.steps is None or spec.steps < 1:
        raise ConfigError(f"{spec.place}: spec.steps must be 1 or more tokens", fix="add 'steps: 3' to spec")
    return ("--spec-type", "draft-simple", "--model-draft", model, "--draft-max", str(spec.steps))


LLAMACPP = Engine(
    name="llamacpp",
    flags=LLAMACPP_FLAGS,
    render=_render,
    roles=frozenset({"agg"}),
    spec_methods=frozenset({"draft_model"}),
    tokenizer="llamacpp",
)
