"""`prony recipe`: how a key is served, where each flag was said, what differs, what is wrong."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.console import say
from prony.cli.recipeimport import add_import_parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prony.recipe.catalogue import Catalogue
    from prony.recipe.deployment import Deployment
    from prony.recipe.explain import Difference, Said
    from prony.spec.point import Point

_FAULTS = 2
_LONG_LIST = 12


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony recipe`."""
    parser = nouns.add_parser(
        "recipe",
        help="how keys are served, and where each flag was said",
        description="Launch recipes: layers of data that give each point of a config one literal deployment.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    _add_list(verbs)
    _add_explain(verbs)
    _add_diff(verbs)
    _add_lint(verbs)
    _add_render(verbs)
    _add_new(verbs)
    add_import_parser(verbs)


def _add_list(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "list",
        help="list recipes, what they extend and serve",
        description="List recipes, what each extends and which keys it serves.",
        epilog="example: prony recipe list --recipes examples/local/recipes",
    )
    _add_recipes(parser)
    parser.set_defaults(run=list_recipes)


def _add_explain(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "explain",
        help="every flag and variable of a point, with file and line",
        description="Show how a point is served: every flag and variable with the file and line that says it.",
        epilog="example: prony recipe explain glm5.2-fp4-mi355x-sglang-agentic-mtp --config examples/seeds/master.yaml "
        "--at conc=16",
    )
    parser.add_argument("key", metavar="KEY", help="config key")
    _add_point(parser)
    parser.add_argument("--json", action="store_true", help="the deployment as JSON")
    parser.set_defaults(run=explain)


def _add_diff(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "diff",
        help="what two keys are started with that differs",
        description="Show what differs between how two keys (or one key at two points) are served.",
        epilog="example: prony recipe diff qwen3.5-fp8-mi355x-sglang-disagg qwen3.5-fp8-mi355x-sglang-disagg-mtp "
        "--config examples/seeds/master.yaml --at conc=64",
    )
    parser.add_argument("first", metavar="A", help="config key")
    parser.add_argument("second", metavar="B", help="config key; may be the same with --against")
    _add_point(parser)
    parser.add_argument("--against", nargs="+", metavar="NAME=VALUE", help="the point of B; default: that of --at")
    parser.set_defaults(run=diff)


def _add_lint(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "lint",
        help="rules that never hold, unknown variables, keys that cannot be served",
        description="Find what is wrong with recipes over all points of a config.",
        epilog="Exit codes: 0 no error, 2 errors. example: prony recipe lint examples/seeds/master.yaml",
    )
    parser.add_argument("config", nargs="+", type=Path, metavar="CONFIG", help="master config (YAML)")
    parser.add_argument("--keys", nargs="+", metavar="KEY", help="only these config keys; * and ? match")
    parser.add_argument("--runner-config", type=Path, metavar="FILE", help="default: runners.yaml beside CONFIG")
    _add_recipes(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object for programs")
    parser.set_defaults(run=lint)


def _add_render(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "render",
        help="the commands that serve a point, to run by hand",
        description="Print a script that serves a point without Prony: docker run commands, or an sbatch job.",
        epilog="example: prony recipe render qwen3.5-fp4-mi355x-sglang --config examples/seeds/master.yaml "
        "--at conc=64",
    )
    parser.add_argument("key", metavar="KEY", help="config key")
    _add_point(parser)
    parser.add_argument("--as", dest="form", choices=("docker", "sbatch"), default="docker", help="default: docker")
    parser.set_defaults(run=render)


def _add_new(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "new",
        help="begin a recipe from a sibling",
        description="Write a recipe for a key: the text of the recipe that serves a sibling, with the new key.",
        epilog="example: prony recipe new qwen3.5-fp8-mi355x-sglang-big --from qwen3.5-fp8-mi355x-sglang",
    )
    parser.add_argument("key", metavar="KEY", help="config key of the new recipe")
    parser.add_argument("--from", dest="sibling", required=True, metavar="KEY", help="a key that is served already")
    _add_recipes(parser)
    parser.set_defaults(run=new)


def _add_recipes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--recipes", type=Path, metavar="DIR", help="default: recipes/ beside CONFIG, and shipped ones")


def _add_point(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", nargs="+", type=Path, metavar="FILE", help="default: ./master.yaml")
    parser.add_argument("--runner-config", type=Path, metavar="FILE", help="default: runners.yaml beside the config")
    _add_recipes(parser)
    parser.add_argument("--at", nargs="+", default=[], metavar="NAME=VALUE", help="which point: conc=64 tp=8 …")
    parser.add_argument(
        "--purpose", choices=("throughput", "eval"), default="throughput", help="evals verify real drafts"
    )


def list_recipes(arguments: argparse.Namespace) -> int:
    """Print one line per recipe."""
    from prony.cli.columns import Column, print_table
    from prony.recipe.catalogue import load_catalogue

    folder = arguments.recipes or (Path("recipes") if Path("recipes").is_dir() else None)
    catalogue = load_catalogue((folder,) if folder else ())
    rows = [
        (name, recipe.extends or "", " ".join(recipe.keys), "shipped" if name in catalogue.shipped else recipe.file)
        for name, recipe in sorted(catalogue.recipes.items())
    ]
    columns = (
        Column("recipe", least=24),
        Column("extends", least=12),
        Column("keys", least=20),
        Column("file", drop=1),
    )
    print_table(columns, rows)
    return 0


def explain(arguments: argparse.Namespace) -> int:
    """Print a point's deployment. Raises ConfigError."""
    from prony.recipe.explain import explain as said
    from prony.recipe.explain import facts

    catalogue, points = _points(arguments, arguments.key)
    deployment = _deployment(arguments, catalogue, points, arguments.at)
    if arguments.json:
        from prony.cli.findings import print_json

        print_json(deployment.model_dump(mode="json"))
        return 0
    layers = " → ".join(recipe.name for recipe in catalogue.chain(deployment.recipe))
    say(f"{'recipe':10} {layers}")
    for name, value in facts(deployment):
        say(f"{name:10} {value}")
    for role in deployment.roles:
        say(f"\n{role.name}: {role.replicas} × {role.gpus} devices, ready when {role.ready.path} answers")
        _print_said([one for one in said(deployment) if one.role == role.name])
    return 0


def _print_said(lines: "Sequence[Said]") -> None:
    shown = [(_left(one), _near(one.place)) for one in lines if one.kind != "file"]
    width = min(max(len(left) for left, _ in shown), 72)
    for left, place in shown:
        say(f"  {left:{width}}  {place}".rstrip())
    for one in lines:
        if one.kind == "file":
            say(f"  file {one.name}:\n" + "\n".join(f"    {line}" for line in one.value.splitlines()))


def _left(one: "Said") -> str:
    return f"{one.name}={one.value}" if one.kind == "env" else f"{one.name} {_brief(one.value)}".strip()


def diff(arguments: argparse.Namespace) -> int:
    """Print what differs. Raises ConfigError."""
    from prony.recipe.explain import differences

    catalogue, first = _points(arguments, arguments.first)
    _, second = _points(arguments, arguments.second)
    found = differences(
        _deployment(arguments, catalogue, first, arguments.at),
        _deployment(arguments, catalogue, second, arguments.against or arguments.at),
    )
    if not found:
        say("no difference")
    for one in found:
        _print_difference(one)
    return 0


def _print_difference(one: "Difference") -> None:
    name = f"{one.role} {one.name}".strip()
    say(f"- {name} {one.first}" if one.first is not None else f"  {name}: only in B")
    say(f"+ {name} {one.second}" if one.second is not None else f"  {name}: only in A")


def lint(arguments: argparse.Namespace) -> int:
    """Print findings about recipes."""
    from prony.cli.findings import plain, print_findings, print_json, summary
    from prony.cli.inputs import find_inputs, read_matrix
    from prony.gate.recipes import lint_recipes
    from prony.recipe.catalogue import load_catalogue

    inputs = find_inputs(arguments)
    points = read_matrix(inputs, unlisted="note").points
    findings = lint_recipes(load_catalogue(inputs.recipes), points)
    if arguments.json:
        print_json({"findings": [plain(finding) for finding in findings]})
    else:
        print_findings(findings)
        say(summary(findings))
    return _FAULTS if any(finding.severity == "error" for finding in findings) else 0


def render(arguments: argparse.Namespace) -> int:
    """Print a script. Raises ConfigError."""
    from prony.cli.console import print_data
    from prony.facts.skus import sku, sku_of_runner
    from prony.recipe.script import script

    catalogue, points = _points(arguments, arguments.key)
    known = sku(sku_of_runner(points[0].runner))
    deployment = _deployment(arguments, catalogue, points, arguments.at)
    print_data(script(deployment, arguments.form, known.vendor if known else "CPU"))
    return 0


def new(arguments: argparse.Namespace) -> int:
    """Write a recipe beside the others. Raises ConfigError, LaunchError."""
    from prony.base.errors import ConfigError
    from prony.base.files import write_atomic
    from prony.recipe.begin import sibling_text
    from prony.recipe.catalogue import load_catalogue

    folder = arguments.recipes or Path("recipes")
    catalogue = load_catalogue((folder,) if folder.is_dir() else ())
    file = folder / f"{arguments.key}.yaml"
    if file.exists():
        raise ConfigError(f"{file}: exists already", fix="edit it, or choose another key")
    text = sibling_text(catalogue, arguments.sibling, arguments.key)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(file, text.encode())
    say(f"{file}\nwhat next: change what differs, then prony recipe diff {arguments.sibling} {arguments.key}")
    return 0


def _points(arguments: argparse.Namespace, key: str) -> "tuple[Catalogue, Sequence[Point]]":
    """Return the catalogue and the points of one key."""
    from prony.base.errors import ConfigError
    from prony.cli.inputs import Inputs, read_matrix
    from prony.recipe.catalogue import load_catalogue

    configs = tuple(arguments.config or (Path("master.yaml"),))
    if not configs[0].exists():
        raise ConfigError(f"{configs[0]}: no such file", fix="name the master config with --config")
    beside = configs[0].parent
    own = arguments.recipes or (beside / "recipes" if (beside / "recipes").is_dir() else None)
    inputs = Inputs(
        configs=configs,
        runners=arguments.runner_config or beside / "runners.yaml",
        load=None,
        recipes=(own,) if own else (),
        keys=(key,),
    )
    return load_catalogue(inputs.recipes), read_matrix(inputs, unlisted="note").points


def _deployment(
    arguments: argparse.Namespace, catalogue: "Catalogue", points: "Sequence[Point]", at: "Sequence[str]"
) -> "Deployment":
    from prony.recipe.resolve import resolve
    from prony.recipe.select import only_point

    return resolve(catalogue, only_point(points, at), arguments.purpose)


def _brief(value: str) -> str:
    """Return a value that fits a line: the middle of a long list is left out."""
    words = value.split(" ")
    return f"{words[0]} {words[1]} … {words[-1]} ({len(words)} values)" if len(words) > _LONG_LIST else value


def _near(place: str) -> str:
    """Return a place from the working directory, where it lies below it."""
    here = f"{Path.cwd()}{os.sep}"
    return place.removeprefix(here)
