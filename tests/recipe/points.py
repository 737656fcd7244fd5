"""Points and recipes for tests."""

from typing import Any

from prony.base.yamldoc import parse_yaml
from prony.recipe.catalogue import Catalogue, make_catalogue
from prony.recipe.model import read_recipe
from prony.spec.point import FixedSeqLen, Point, RolePool, Topology

SIM_PARENT = "schema: 1\nengine: sim\nroles: {agg: {args: {ttft-ms: 20, itl-ms: 2}}}\n"


def point(**changes: Any) -> Point:
    values: dict[str, Any] = {
        "config_key": "sim-a",
        "image": "img:1",
        "model": "org/model",
        "model_prefix": "model",
        "precision": "fp8",
        "framework": "sim",
        "runner": "cpu-local",
        "topology": Topology(pools=(RolePool(role="agg", tp=1, ep=1),)),
        "workload": FixedSeqLen(isl=128, osl=32),
        "concurrency": 4,
    }
    return Point(**{**values, **changes})


def catalogue(**texts: str) -> Catalogue:
    """Make a catalogue of recipe texts; `__` in a name stands for a hyphen."""
    names = {name.replace("__", "-"): text for name, text in texts.items()}
    return make_catalogue(read_recipe(parse_yaml(text, f"{name}.yaml"), name) for name, text in names.items())


def flags(argv: tuple[str, ...]) -> dict[str, str | bool]:
    """Return the flags of an argv that repeats none."""
    found: dict[str, str | bool] = {}
    for word, after in zip(argv, (*argv[1:], "--"), strict=True):
        if word.startswith("--"):
            found[word[2:]] = True if after.startswith("--") else after
    return found
