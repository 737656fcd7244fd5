"""How Dynamo's workers and frontend are called: the engines of others, put together by its own runtime."""

from dataclasses import replace
from functools import cache

from prony.recipe.engines import sglang, trtllm, vllm
from prony.recipe.engines.engine import Engine, Render
from prony.recipe.engines.flags import Flag, argv_of
from prony.recipe.engines.shared import HOST, PRONY, model_argument
from prony.recipe.engines.tables import table
from prony.recipe.intent import Intent, Rendered, RoleIntent, variables

# Files under the job's own folder tell workers and frontend of each other: no etcd, no NATS.
_RUNTIME = ("--discovery-backend", "file", "--request-plane", "tcp")
_FOUND = {"DYN_FILE_KV": "{shared_dir}/dynamo"}
_OWNED = ("discovery-backend", "request-plane", "disaggregation-mode", "is-prefill-worker", "is-decode-worker")


def _merged(own: str, engine: tuple[Flag, ...]) -> tuple[Flag, ...]:
    """Return an engine's flags and those that Dynamo's worker adds."""
    ours = table(own).owned(dict.fromkeys(_OWNED, PRONY))
    names = {flag.name for flag in engine}
    return (*engine, *(flag for flag in ours if flag.name not in names))


@cache
def _vllm_flags(_image: str) -> tuple[Flag, ...]:
    return _merged("dynamo-vllm", vllm.flags(""))


@cache
def _sglang_flags(_image: str) -> tuple[Flag, ...]:
    return _merged("dynamo-sglang", sglang.flags(""))


@cache
def _trtllm_flags(_image: str) -> tuple[Flag, ...]:
    own = dict.fromkeys(("tensor-parallel-size", "pipeline-parallel-size", "expert-parallel-size"), "topology")
    own |= dict.fromkeys(("enable-attention-dp", *_OWNED), "topology")
    own |= {"model-path": "model.id", "served-model-name": "served_model", "extra-engine-args": "args 'config.…'"}
    return (*table("dynamo-trtllm").owned(own), Flag("config.", "text", "a key of the options file"))


def _mode(role: RoleIntent) -> tuple[str, ...]:
    return () if role.pool.role == "agg" else ("--disaggregation-mode", role.pool.role)


def _render_vllm(intent: Intent, role: RoleIntent) -> Rendered:
    called = ("{python}", "-m", "dynamo.vllm", "--model", model_argument(intent.model))
    named = ("--served-model-name", intent.served_model, *_RUNTIME, *_mode(role))
    words = (*called, *named, *vllm.engine_words(intent, role), *argv_of(role.args, _vllm_flags(intent.image)))
    return Rendered(words, variables(**_FOUND, DYN_SYSTEM_PORT="{port:http}"))


def _render_sglang(intent: Intent, role: RoleIntent) -> Rendered:
    called = ("{python}", "-m", "dynamo.sglang", "--model-path", model_argument(intent.model))
    named = ("--served-model-name", intent.served_model, *_RUNTIME)
    words = (*called, *named, *sglang.engine_words(intent, role), *argv_of(role.args, _sglang_flags(intent.image)))
    env = variables(**_FOUND, DYN_SYSTEM_PORT="{port:http}")
    return Rendered(words, (*env, *sglang.simulated(intent, role)))


def _render_trtllm(intent: Intent, role: RoleIntent) -> Rendered:
    pool = role.pool
    own = tuple(arg for arg in role.args if not arg.name.startswith("config."))
    deep = ("--pipeline-parallel-size", str(pool.pp)) if pool.pp > 1 else ()
    spread = ("--tensor-parallel-size", str(pool.tp), "--expert-parallel-size", str(pool.ep or 1), *deep)
    called = ("{python}", "-m", "dynamo.trtllm", "--model-path", model_argument(intent.model))
    named = ("--served-model-name", intent.served_model, *_RUNTIME, *_mode(role), *spread)
    words = (*called, *named, "--extra-engine-args", f"{{file:{trtllm.OPTIONS_FILE}}}", *argv_of(own))
    env = (*variables(**_FOUND, DYN_SYSTEM_PORT="{port:http}"), *trtllm.forced(intent, role))
    return Rendered(words, env, files=(trtllm.options_file(intent, role),))


@cache
def frontend_flags() -> tuple[Flag, ...]:
    """Return the flags of Dynamo's frontend."""
    return table("dynamo-frontend").owned({"http-port": PRONY, "http-host": PRONY, **dict.fromkeys(_OWNED, PRONY)})


def _render_frontend(_intent: Intent, role: RoleIntent) -> Rendered:
    called = ("{python}", "-m", "dynamo.frontend", "--http-host", HOST, "--http-port", "{port:http}", *_RUNTIME)
    return Rendered((*called, *argv_of(role.args, frontend_flags())), variables(**_FOUND))


def _over(base: Engine, name: str, render: Render, flags: object) -> Engine:
    return replace(
        base,
        name=name,
        render=render,
        flags=flags,  # type: ignore[arg-type]
        roles=frozenset({"agg", "prefill", "decode"}),
        routers={"dynamo-router": _render_frontend},
        router_flags={"dynamo-router": frontend_flags},
        always_routed=True,
        probe="/health",
    )


DYNAMO_VLLM = _over(vllm.VLLM, "dynamo-vllm", _render_vllm, _vllm_flags)
DYNAMO_SGLANG = _over(sglang.SGLANG, "dynamo-sglang", _render_sglang, _sglang_flags)
DYNAMO_TRTLLM = _over(trtllm.TRTLLM, "dynamo-trtllm", _render_trtllm, _trtllm_flags)
