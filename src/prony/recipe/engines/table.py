"""All engines by name."""

import difflib

from prony.base.errors import ConfigError
from prony.recipe.engines.atom import ATOM
from prony.recipe.engines.dynamo import DYNAMO_SGLANG, DYNAMO_TRTLLM, DYNAMO_VLLM
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.llamacpp import LLAMACPP
from prony.recipe.engines.llmd import LLMD_VLLM
from prony.recipe.engines.sglang import SGLANG
from prony.recipe.engines.sim import SIM
from prony.recipe.engines.trtllm import TRTLLM
from prony.recipe.engines.vllm import VLLM

_ALL = (VLLM, SGLANG, TRTLLM, ATOM, DYNAMO_VLLM, DYNAMO_SGLANG, DYNAMO_TRTLLM, LLMD_VLLM, LLAMACPP, SIM)
ENGINES = {engine.name: engine for engine in _ALL}


def engine_named(name: str, place: str) -> Engine:
    """Return an engine. Raises ConfigError, with `place` (file:line) and the known ones."""
    if name in ENGINES:
        return ENGINES[name]
    guess = difflib.get_close_matches(name, list(ENGINES), n=1)
    hint = f" (did you mean '{guess[0]}'?)" if guess else ""
    raise ConfigError(f"{place}: '{name}' is not an engine{hint}", allowed=", ".join(ENGINES))
