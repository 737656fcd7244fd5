"""The flags of `prony.recipe.engines.llamacpp_server`, named as llama.cpp's own server names them."""

from prony.recipe.engines.flags import Flag

_PRONY = "prony itself"
_CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl")

LLAMACPP_FLAGS = (
    Flag("model", "text", "the GGUF file to serve", required=True, owner="model.files"),
    Flag("host", "text", "address to listen on", default="127.0.0.1", owner=_PRONY),
    Flag("port", "int", "port to listen on", required=True, owner=_PRONY),
    Flag("alias", "text", "name under which the model is served", owner="served_model"),
    Flag("metrics", "switch", "serve Prometheus metrics at /metrics", owner=_PRONY),
    Flag("model-draft", "text", "the GGUF file that drafts", owner="spec.draft_model"),
    Flag("spec-type", "text", "how tokens are drafted", choices=("none", "draft-simple"), owner="spec.method"),
    Flag(
        "spec-synth-len",
        "float",
        "tokens per step to simulate, the bonus token included",
        least=1,
        owner="spec.acceptance",
    ),
    Flag("draft-max", "int", "tokens drafted per step, at most", owner="spec.steps"),
    Flag("ctx-size", "int", "tokens of context over all slots (0: the model's)", default=0, least=0),
    Flag("parallel", "int", "slots: requests decoded at once", default=1, least=1),
    Flag("threads", "int", "threads that decode (-1: all)", default=-1, least=-1),
    Flag("threads-batch", "int", "threads that prefill (-1: all)", default=-1, least=-1),
    Flag("threads-http", "int", "threads that answer HTTP (-1: llama.cpp's choice)", default=-1, least=-1),
    Flag(
        "poll",
        "int",
        "how hard idle threads spin for work, 0 (sleep) to 100",
        default=50,
        least=0,
        most=100,
    ),
    Flag("batch-size", "int", "tokens of one logical batch", default=2048, least=1),
    Flag("ubatch-size", "int", "tokens of one physical batch", default=512, least=1),
    Flag("n-gpu-layers", "int", "layers put on the GPU (-1: as many as fit)", default=-1, least=-1),
    Flag("cache-type-k", "text", "type of cached keys", default="f16", choices=_CACHE_TYPES),
    Flag("cache-type-v", "text", "type of cached values", default="f16", choices=_CACHE_TYPES),
    Flag("draft-min", "int", "tokens drafted per step, at least", default=0, least=0),
    Flag("draft-p-min", "float", "probability below which drafting stops", default=0.0, least=0, most=1),
    Flag("no-cache-prompt", "switch", "never reuse a prompt's cached prefix"),
    Flag("no-warmup", "switch", "skip the empty run after loading"),
    Flag("verbosity", "int", "log level of llama.cpp", default=3),
)
