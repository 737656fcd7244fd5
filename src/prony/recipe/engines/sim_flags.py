"""The flags of `prony.sim.server`."""

from prony.recipe.engines.flags import Flag

_PRONY = "prony itself"

SIM_FLAGS = (
    Flag("host", "text", "address to listen on", default="127.0.0.1", owner=_PRONY),
    Flag("port", "int", "port to listen on (0: any)", required=True, owner=_PRONY),
    Flag("model", "text", "name under which the model is served", required=True, owner="served_model"),
    Flag("ttft-ms", "float", "milliseconds from admission to the first token", default=20.0, least=0),
    Flag("itl-ms", "float", "milliseconds between tokens", default=2.0, least=0),
    Flag("prefill-us-per-token", "float", "microseconds that each prompt token adds to TTFT", default=0.0, least=0),
    Flag("slots", "int", "requests served at once, others wait in line (0: no limit)", default=0, least=0),
    Flag("tokens-per-event", "int", "tokens in each event after the first", default=1, least=1),
    Flag("role-chunk-ms", "float", "chat: milliseconds from arrival to the empty role chunk", default=0.0, least=0),
    Flag("max-model-len", "int", "prompt and output tokens, at most", default=32768, least=2),
    Flag("start-delay-s", "float", "seconds until the server listens", default=0.0, least=0),
    Flag("workers", "int", "processes on one port; slots and counters are of each", default=1, least=1, most=256),
    Flag("seed", "int", "seed of the generated tokens", default=0),
    Flag("fault", "text", "a fault to inject, NAME or NAME=VALUE; can be repeated", repeats=True),
)
