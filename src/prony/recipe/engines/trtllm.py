"""How TensorRT-LLM's server is called: options, and a file for what has none."""

from functools import cache

import yaml

from prony.base.errors import ConfigError
from prony.recipe.deployment import EnvVar, RoleFile
from prony.recipe.engines import telling
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.flags import Arg, Flag, argv_of
from prony.recipe.engines.shared import HOST, PRONY, draft_model_of, model_argument, refuse, sizes, unless_set
from prony.recipe.engines.tables import table
from prony.recipe.intent import Intent, Rendered, RoleIntent, variables
from prony.spec.point import RolePool

OPTIONS_FILE = "llm-options.yaml"
_CONFIG = "config."
_TOPOLOGY = (
    *("tensor_parallel_size", "tp_size", "pipeline_parallel_size", "pp_size", "context_parallel_size", "cp_size"),
    *("moe_expert_parallel_size", "ep_size", "gpus_per_node", "server_role"),
)
OWNERS = {
    "host": PRONY,
    "port": PRONY,
    "config": "args that begin with 'config.'",
    "extra_llm_api_options": "args that begin with 'config.'",
    **dict.fromkeys(_TOPOLOGY, "topology"),
}
# Keys of the options file that the typed intent writes.
_OWNED_KEYS = {"speculative_config": "spec.method", "enable_attention_dp": "topology", "cache_transceiver_config": ""}
_METHODS = {"mtp": "MTP", "nextn": "MTP", "eagle3": "Eagle3", "eagle": "Eagle3", "draft_model": "DraftTarget"}
_METHODS["ngram"] = "NGram"
_TRANSFERS = {"default": "DEFAULT", "ucx": "UCX", "nixl": "NIXL", "mooncake": "MOONCAKE"}

Options = dict[str, object]


@cache
def flags(image: str) -> tuple[Flag, ...]:
    """Return the options of trtllm-serve."""
    return table("trtllm", image).owned(OWNERS)


def _render(intent: Intent, role: RoleIntent) -> Rendered:
    own = tuple(arg for arg in role.args if not arg.name.startswith(_CONFIG))
    called = ("trtllm-serve", "serve", model_argument(intent.model), "--host", HOST, "--port", "{port:http}")
    words = (*called, "--config", f"{{file:{OPTIONS_FILE}}}", *_parallel(role.pool))
    words += unless_set(role, "max_seq_len", intent.context)
    file = options_file(intent, role)
    return Rendered((*words, *argv_of(own)), env=forced(intent, role), files=(file,))


def _parallel(pool: RolePool) -> tuple[str, ...]:
    spread = sizes((("pp_size", pool.pp), ("cp_size", max(pool.pcp, pool.dcp)), ("ep_size", pool.ep)))
    return ("--tp_size", str(pool.tp), *spread)


def options_file(intent: Intent, role: RoleIntent) -> RoleFile:
    """Return the options file: typed intent, then the recipe's `config.` arguments, dots going down.

    Raises ConfigError for a key that the typed intent owns.
    """
    refuse(intent, "trtllm", data_parallel_replicas=role.pool.dp > 1)
    options: Options = {"backend": "pytorch", "print_iter_log": True, "enable_iter_perf_stats": True}
    options["enable_attention_dp"] = bool(role.pool.dp_attention)
    if intent.graph_batch is not None:
        options["cuda_graph_config"] = {"enable_padding": True, "max_batch_size": intent.graph_batch}
    if intent.spec is not None:
        options["speculative_config"] = _speculation(intent)
    if intent.disagg:
        options["cache_transceiver_config"] = {"backend": _TRANSFERS[str(intent.kv_transfer)]}
    if intent.offload is not None:
        options["kv_cache_config"] = {"host_cache_size": intent.offload.dram_gb * 10**9}
    for arg in role.args:
        if arg.name.startswith(_CONFIG):
            _put(options, arg)
    return RoleFile(name=OPTIONS_FILE, text=yaml.safe_dump(options, sort_keys=True))


def _put(options: Options, arg: Arg) -> None:
    head, *rest = arg.name.removeprefix(_CONFIG).split(".")
    path = [head, *rest]
    if head in _OWNED_KEYS and (not rest or head == "enable_attention_dp"):
        owner = _OWNED_KEYS[head] or "kv_transfer"
        raise ConfigError(
            f"{arg.place}: '{arg.name}' is not set in args: it comes from {owner}", fix="delete this line"
        )
    here = options
    for name in path[:-1]:
        inner = here.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{arg.place}: '{arg.name}' goes below '{name}', which is a value")
        here = inner
    values = [yaml.safe_load(value) for value in arg.values]
    here[path[-1]] = True if not values else values if len(values) > 1 else values[0]


def _speculation(intent: Intent) -> Options:
    spec = intent.spec
    assert spec is not None, "asked only where there is one"
    if spec.topk != 1:
        raise ConfigError(f"{intent.spec_place}: trtllm drafts chains here", allowed="spec.topk: 1")
    kind = _METHODS[spec.method]
    count = "num_nextn_predict_layers" if kind == "MTP" else "max_draft_len"
    model = draft_model_of(intent)
    return {"decoding_type": kind, count: spec.steps, **({"speculative_model_dir": model} if model else {})}


def forced(intent: Intent, role: RoleIntent) -> tuple[EnvVar, ...]:
    """Return the variable that forces acceptance: it counts accepted drafts alone, without the bonus token."""
    spec = intent.spec
    if spec is None or spec.acceptance_length is None or role.pool.role == "prefill":
        return ()
    return variables(TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=f"{spec.acceptance_length - 1:.4g}")


TRTLLM = Engine(
    name="trtllm",
    flags=lambda image: (*flags(image), Flag(_CONFIG, "text", "a key of the options file")),
    render=_render,
    roles=frozenset({"agg"}),
    spec_methods=frozenset(_METHODS),  # type: ignore[arg-type]
    tokenizer="none",
    golden=True,
    offload_backends=frozenset({"native"}),
    kv_transfers=frozenset(_TRANSFERS),
    env_prefixes=("TLLM_", "TRTLLM_"),
    telling=telling.TRTLLM,
)
