"""The recipes that the how-to shows resolve as written."""

import re

from prony.base.yamldoc import parse_yaml
from prony.recipe.catalogue import make_catalogue
from prony.recipe.model import read_recipe
from prony.recipe.resolve import resolve
from prony.spec.point import RolePool, Topology
from tests.conftest import REPOSITORY
from tests.recipe.points import flags, point

PAGE = (REPOSITORY / "docs/how-to/recipes.md").read_text()
RECIPES = re.findall(r"^```yaml\n# recipes/(\S+)\.yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CATALOGUE = make_catalogue(read_recipe(parse_yaml(text, f"{name}.yaml"), name) for name, text in RECIPES)


def test_the_page_shows_recipes_that_resolve() -> None:
    assert [name for name, _ in RECIPES] == ["sglang-mybox", "my-model", "my-disagg"]
    topology = Topology(pools=(RolePool(role="agg", tp=8),))
    asked = point(config_key="mymodel-fp8-mi355x-sglang-mtp", framework="sglang", topology=topology, image="x:v0.5.16")
    found = resolve(CATALOGUE, asked.model_copy(update={"concurrency": 128, "spec_decoding": "mtp"}))
    args = flags(found.roles[0].argv)
    assert args["chunked-prefill-size"] == "32768" and args["speculative-num-steps"] == "3"
    assert args["context-length"] == "416" and args["cuda-graph-max-bs"] == "128"


def test_the_page_shows_prefill_and_decode_apart() -> None:
    topology = Topology(pools=(RolePool(role="prefill", tp=4), RolePool(role="decode", tp=8)))
    changes = {"framework": "sglang-disagg", "topology": topology, "kv_transfer": "mori", "image": "x:v0.5.16"}
    found = resolve(CATALOGUE, point(config_key="mymodel-fp8-mi355x-sglang-disagg", **changes))
    shares = {role.name: flags(role.argv).get("mem-fraction-static") for role in found.roles}
    assert shares == {"prefill": "0.8", "decode": "0.85", "router": None}
