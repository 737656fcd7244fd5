"""`prony demo`: the local example, from an installed package as from a checkout."""

import argparse
from pathlib import Path


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony demo`."""
    parser = nouns.add_parser(
        "demo",
        help="sweep a real engine on this machine",
        description="Sweep a real llama.cpp server with a real 135M model, with and without a draft, at 1, 2 and 4 "
        "concurrent requests; then print a table and write a report. Needs no GPU; under four minutes on two cores.",
        epilog="example: prony demo",
    )
    parser.set_defaults(run=demo)


def demo(_arguments: argparse.Namespace) -> int:
    """Run the local example. Raises LaunchError when its parts are not installed."""
    from prony.base.errors import LaunchError
    from prony.cli.main import build_parser
    from prony.cli.parts import install, missing

    if lacking := missing():
        raise LaunchError(f"not installed: {' and '.join(part.what for part in lacking)}", fix=install())
    arguments = build_parser().parse_args(["run", str(example("local") / "master.yaml")])
    code: int = arguments.run(arguments)
    return code


def example(name: str) -> Path:
    """Return the folder of an example: in the installed package, else in the checkout. Raises LaunchError."""
    from prony.base.errors import LaunchError

    package = Path(__file__).resolve().parent.parent
    for folder in (package / "examples" / name, package.parent.parent / "examples" / name):
        if (folder / "master.yaml").exists():
            return folder
    raise LaunchError(f"the example '{name}' is not in this installation", fix="reinstall prony from its wheel")
