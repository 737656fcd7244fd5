"""What a recipe would start that a launch did not: flags that come of a point's labels alone, models, acceptance."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import orjson

from prony.recipe.deployment import SpecDecode
from prony.recipe.engines.table import ENGINES
from prony.recipe.importers.launch import Values

_ENGINES_OWN = ("model.id", "served_model", "prony itself")
# What Prony's options file always says: how TensorRT-LLM reports what it does, and its only backend.
_ALWAYS = frozenset({"config", "config.backend", "config.print_iter_log", "config.enable_iter_perf_stats"})
_CHAIN = frozenset({"speculative-eagle-topk", "speculative-num-draft-tokens"})
_LENGTH = "SGLANG_SIMULATE_ACC_LEN"
_WITHOUT_BONUS = "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"


def unasked(found: Mapping[str, Values], given: Mapping[str, Values], engine: str, image: str) -> Iterator[str]:
    """Yield the flags that a deployment gives and a launch has not. Names are the engine's own in both.

    A size of one and a switch that is off are what engines do unasked; a chain's width follows from its steps.
    """
    owners = {flag.name: flag.owner for flag in ENGINES[engine].flags(image)}
    for name, values in given.items():
        silent = (
            name in _ALWAYS or (name in _CHAIN and "speculative-num-steps" in found) or values in (("1",), ("false",))
        )
        if name not in found and owners.get(name) not in _ENGINES_OWN and not silent:
            yield f"{name} {' '.join(values)}".strip()


def other_model(named: str | None, model: str) -> str | None:
    """Return the model that a launch serves when it is another than the point's; folders count by their last name."""
    if named is None or named in (model, "/tmp/hub/snapshot"):
        return None
    same = PurePosixPath(named).name.lower() == PurePosixPath(model).name.lower()
    return None if same and named.startswith(("/", ".")) else named


def simulated_length(flags: Mapping[str, Values], env: Mapping[str, str]) -> float | None:
    """Return the acceptance length that a launch simulates, in tokens a step with the bonus token; None without."""
    try:
        if _LENGTH in env:
            return float(env[_LENGTH])
        if _WITHOUT_BONUS in env:
            return float(env[_WITHOUT_BONUS]) + 1
        if values := flags.get("spec-decode-acceptance-length"):
            return float(values[0])
        said = orjson.loads(flags["speculative-config"][0]) if flags.get("speculative-config") else {}
        return float(said["synthetic_acceptance_length"]) if "synthetic_acceptance_length" in said else None
    except (ValueError, KeyError, TypeError):
        return None


def acceptance_differs(length: float | None, spec: SpecDecode | None) -> str | None:
    """Say how the acceptance of a launch differs from what a recipe gives."""
    given = spec.acceptance_length if spec else None
    if length == given or (length is not None and given is not None and abs(length - given) < 1e-6):
        return None
    told = [
        "real acceptance" if one is None else f"a simulated acceptance length of {one:g}" for one in (length, given)
    ]
    return f"{told[0]} was found, {told[1]} is given"
