"""Whether the points that a change asks for can run, and as asked."""

from collections.abc import Sequence
from pathlib import Path

from prony.base.errors import ConfigError
from prony.base.finding import Finding
from prony.gate.document import Config
from prony.gate.git import Checkout
from prony.plan.judged import gathered, judge
from prony.recipe.catalogue import load_catalogue
from prony.spec.point import Point

RULE = "recipe-invalid"


def feasibility_findings(
    checkout: Checkout, configs: Sequence[str], head: Config, points: Sequence[Point]
) -> tuple[Finding, ...]:
    """Judge new and altered points, as the recipes beside the first config and those that come with Prony launch them.

    One finding tells all points of a key that share it; what is only worth knowing is left to `prony plan check`.
    """
    if not points:
        return ()
    folder = (checkout.folder / configs[0]).parent / "recipes" if configs else Path()
    try:
        catalogue = load_catalogue((folder,) if folder.is_dir() and configs else ())
    except ConfigError as error:
        return (Finding(rule=RULE, severity="error", message=error.message, allowed=error.allowed, fix=error.fix),)
    return gathered(judge(points, catalogue, {key.name: key.where for key in head.keys}))
