"""How llama.cpp's server is called."""

from prony.base.errors import ConfigError
from prony.recipe.deployment import SpecDecode
from prony.recipe.engines import telling
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.flags import argv_of
from prony.recipe.engines.llamacpp_flags import LLAMACPP_FLAGS
from prony.recipe.intent import Intent, Rendered, RoleIntent


def _render(intent: Intent, role: RoleIntent) -> Rendered:
    if not intent.model.files:
        raise ConfigError(f"{intent.place}: llamacpp needs a file to serve", fix="add model.location and model.files")
    if role.pool.gpus != 1:
        raise ConfigError(
            f"{intent.place}: llamacpp serves one device here, the point asks for {role.pool.gpus}",
            allowed="tp, pp, pcp, dp and replicas of 1",
            fix="mend the search space in the master config: a label must equal what runs",
        )
    model = "{model_dir}/" + intent.model.files[0].name
    return Rendered(
        (
            *("{python}", "-m", "prony.recipe.engines.llamacpp_server", "--model", model),
            *("--host", "127.0.0.1", "--port", "{port:http}", "--alias", intent.served_model, "--metrics"),
            *(_drafting(intent.spec, intent.spec_place, model) if intent.spec else ()),
            *argv_of(role.args),
        )
    )


def _drafting(spec: SpecDecode, place: str, model: str) -> tuple[str, ...]:
    if spec.draft_model != "self":
        raise ConfigError(f"{place}: llamacpp can't draft with '{spec.draft_model}'", allowed="spec.draft_model: self")
    simulated = () if spec.acceptance_length is None else ("--spec-synth-len", str(spec.acceptance_length))
    return ("--spec-type", "draft-simple", "--model-draft", model, "--draft-max", str(spec.steps), *simulated)


LLAMACPP = Engine(
    name="llamacpp",
    flags=lambda _image: LLAMACPP_FLAGS,
    render=_render,
    roles=frozenset({"agg"}),
    spec_methods=frozenset({"draft_model"}),
    tokenizer="llamacpp",
    golden=True,
    telling=telling.LLAMACPP,
)
