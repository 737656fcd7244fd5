"""Resolve every point of master configs: python bench/recipes.py CONFIG_FOLDER. The bound is two seconds.

Keys that no shipped recipe serves get one here that says the least that they need: every point goes the whole way.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from prony.base.errors import ConfigError
from prony.recipe.catalogue import Catalogue, load_catalogue
from prony.recipe.engines.table import ENGINES
from prony.recipe.labels import METHODS_OF_LABEL, engine_of_framework
from prony.recipe.resolve import resolve
from prony.recipe.when import MTP_SIZE
from prony.spec.master import load_master
from prony.spec.matrix import expand, select
from prony.spec.point import Point
from prony.spec.runners import load_runners

BOUND_S = 2.0


def least(points: Sequence[Point]) -> str | None:
    """Return a recipe for the points of one key, None when no engine of Prony's serves their framework."""
    first = points[0]
    engine = ENGINES.get(engine_of_framework(first.framework))
    if engine is None:
        return None
    labels = {point.spec_decoding for point in points} - {"none"}
    sized = any(one.name == MTP_SIZE for pool in points[-1].topology.pools for one in pool.settings)
    rules = "".join(_rule(label, engine.spec_methods, "${mtp_size}" if sized else "3") for label in sorted(labels))
    several = any(sum(pool.replicas for pool in point.topology.pools) > 1 for point in points) or engine.always_routed
    named = first.router.name if first.router else next(iter(sorted(engine.routers)), None)
    kind = named if several else None
    router = f"topology: {{router: {{kind: {kind}}}}}\n" if kind else ""
    ratio = "kv_offload: {ratio: 1}\n" if engine.name == "sglang" else ""
    return f"schema: 1\nengine: {engine.name}\nkeys: [{first.config_key}]\n{router}{ratio}" + (
        f"rules:\n{rules}" if rules else ""
    )


def _rule(label: str, known: frozenset[str], steps: str) -> str:
    method = next(name for name in METHODS_OF_LABEL[label] if name in known)  # type: ignore[index]
    return f'- {{when: {{spec_decoding: {label}}}, spec: {{method: {method}, steps: "{steps}", acceptance: real}}}}\n'


def made(points: Sequence[Point], folder: Path) -> Catalogue:
    """Write a recipe for each key that no shipped one serves."""
    shipped = load_catalogue(())
    by_key: dict[str, list[Point]] = {}
    for point in points:
        by_key.setdefault(point.config_key, []).append(point)
    for key, members in by_key.items():
        try:
            shipped.find(key)
        except ConfigError:
            text = least(members)
            if text is not None:
                (folder / f"{key}.yaml").write_text(text)
    return load_catalogue((folder,))


def outcomes(catalogue: Catalogue, points: Sequence[Point]) -> Iterator[str]:
    """Yield the fault of each point, empty for one that resolves."""
    for point in points:
        try:
            resolve(catalogue, point)
            yield ""
        except ConfigError as error:
            yield f"{point.config_key}: {error.message.partition(': ')[2] or error.message}"


def main() -> int:
    """Print the time and what cannot be resolved."""
    folder = Path(sys.argv[1])
    masters = load_master(sorted(folder.glob("*-master.yaml")))
    points = expand(select(masters, None), load_runners(folder / "runners.yaml"), unlisted="note").points
    with tempfile.TemporaryDirectory() as place:
        catalogue = made(points, Path(place))
        began = time.perf_counter()
        told = list(outcomes(catalogue, points))
        took = time.perf_counter() - began
    done = told.count("")
    print(
        f"{done} of {len(points)} points resolved in {took:.2f} s  {'ok' if took < BOUND_S else 'MISSED'} ({BOUND_S} s)"
    )
    for fault in sorted({fault for fault in told if fault}):
        print(f"  {told.count(fault):4d}  {fault[:200]}")
    return 0 if took < BOUND_S else 1


if __name__ == "__main__":
    sys.exit(main())
