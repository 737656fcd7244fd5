"""Finds and reads what a command needs beside its master configs: runners, load rules, recipes."""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.base.errors import ConfigError, PlanError
from prony.base.units import counted
from prony.plan.job import Launch
from prony.plan.planner import plan
from prony.recipe.catalogue import load_catalogue
from prony.recipe.resolve import resolve
from prony.spec.load import LoadRules
from prony.spec.loadfile import load_rules
from prony.spec.master import load_master
from prony.spec.matrix import EVERYTHING, Matrix, Unlisted, Wanted, expand, select
from prony.spec.point import FixedSeqLen
from prony.spec.runners import load_runners


@dataclass(frozen=True)
class Inputs:
    """The files of one command, found or given. recipes: directories; load: None for the reference's rules."""

    configs: tuple[Path, ...]
    runners: Path
    load: Path | None
    recipes: tuple[Path, ...]
    keys: tuple[str, ...] | None


def find_inputs(arguments: argparse.Namespace) -> Inputs:
    """Find the companions of the configs. Raises ConfigError that says where each was looked for."""
    configs: tuple[Path, ...] = tuple(arguments.config)
    beside = configs[0].parent
    load = getattr(arguments, "load", None)
    recipes = getattr(arguments, "recipes", None)
    beside_load, beside_recipes = beside / "load.yaml", beside / "recipes"
    given = (recipes,) if recipes else ()
    return Inputs(
        configs=configs,
        runners=arguments.runner_config or beside / "runners.yaml",
        load=load or (beside_load if beside_load.exists() else None),
        recipes=given or ((beside_recipes,) if beside_recipes.is_dir() else ()),
        keys=tuple(arguments.keys) if arguments.keys else None,
    )


def read_matrix(inputs: Inputs, wanted: Wanted = EVERYTHING, *, unlisted: Unlisted = "refuse") -> Matrix:
    """Read configs and runners and expand the selected keys, narrowed by filters. Raises ConfigError and PlanError."""
    master = load_master(inputs.configs)
    if not inputs.runners.exists():
        raise ConfigError(
            f"{inputs.runners}: no such file",
            fix="put a runners.yaml (labels: and hardware:) beside the config or name one with --runner-config",
        )
    return expand(select(master, inputs.keys), load_runners(inputs.runners), wanted, unlisted=unlisted)


def runnable(matrix: Matrix) -> Matrix:
    """Leave out the points for which no load can be made yet. Raises PlanError when none is left."""
    kept = tuple(point for point in matrix.points if isinstance(point.workload, FixedSeqLen))
    agentic = Counter(point.config_key for point in matrix.points if not isinstance(point.workload, FixedSeqLen))
    told = tuple(f"{key}: {counted(number, 'agentic point')} (no replay yet)" for key, number in agentic.items())
    if not kept:
        raise PlanError(
            f"nothing to run: {', '.join(told)}", allowed="fixed-seq-len", fix="choose other keys with --keys"
        )
    return Matrix(points=kept, left_out=(*matrix.left_out, *told), notes=matrix.notes)


def read_launches(inputs: Inputs, matrix: Matrix) -> tuple[Launch, ...]:
    """Resolve recipes and load rules to launches. Raises ConfigError and PlanError."""
    catalogue = load_catalogue(inputs.recipes)
    rules = load_rules(inputs.load) if inputs.load else LoadRules()
    return plan(
        matrix.points,
        lambda point: resolve(catalogue, point),
        rules,
        config_file=str(inputs.configs[0]),
        config_digest=files_digest(inputs.configs),
        load_file=str(inputs.load) if inputs.load else "",
    )


def files_digest(paths: Sequence[Path]) -> str:
    """Return one sha256 over the content of several files."""
    import hashlib

    total = hashlib.sha256()
    for path in paths:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
