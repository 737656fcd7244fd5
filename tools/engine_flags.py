"""Print the table of an engine's flags, from its own argument parser: run with the Python of the engine.

    python tools/engine_flags.py vllm.entrypoints.common.cli_args:make_arg_parser vllm 0.33.0 [--env FILE...]

A line is a flag and its kind (int, float, text, switch; int* takes several words), with its choices where it has some;
or `env` and the name of a variable that the engine reads, found in its files of such names. --stub names modules to be
replaced by empty ones where they are not installed: only the parser is wanted.
"""

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import re
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import MagicMock

KINDS = {int: "int", float: "float"}
SWITCHES = ("StoreTrue", "StoreFalse", "BooleanOptional", "StoreConst")
LEFT_OUT = {"help", "version", "h"}


class _Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives an empty module for one that is not installed; the last finder that is asked."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        known = name.partition(".")[0] in self.names or name in self.names
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__name__ = [], spec, spec.name
        return module  # type: ignore[return-value]

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def kind_of(action: argparse.Action) -> str:
    """Return the kind of a flag as the table writes it."""
    if any(name in type(action).__name__ for name in SWITCHES) or action.nargs == 0:
        return "switch"
    kind = KINDS.get(action.type, "text") if isinstance(action.type, type) else "text"
    listed = list(action.choices or [])
    if listed and all(isinstance(one, int) for one in listed):
        kind = "int"
    return f"{kind}*" if action.nargs in ("+", "*") else kind


def lines(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the lines of a parser's long flags, by name."""
    found: dict[str, str] = {}
    for action in parser._actions:
        kind = kind_of(action)
        choices = "|".join(map(str, action.choices)) if action.choices and kind.startswith("text") else ""
        for option in action.option_strings:
            name = option.removeprefix("--")
            if option.startswith("--") and name not in LEFT_OUT and " " not in choices:
                found[name] = f"{name} {kind} {choices}".rstrip()
    yield from (found[name] for name in sorted(found))


def variables(files: Sequence[Path], prefix: str) -> Iterator[str]:
    """Yield the variables that files of an engine name."""
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    yield from (f"env {name}" for name in sorted(set(re.findall(rf"\b{prefix}_[A-Z0-9_]+\b", text))))


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("maker", help="MODULE:FUNCTION that fills a parser, or a class's function MODULE:CLASS.FUNCTION")
    asked.add_argument("engine")
    asked.add_argument("version")
    asked.add_argument("--env", type=Path, nargs="*", default=[])
    asked.add_argument("--prefix", default="")
    asked.add_argument("--stub", nargs="*", default=[])
    asked.add_argument("--with", dest="extra", default="{}", help="more arguments of the function, as JSON")
    arguments = asked.parse_args()
    sys.meta_path.append(_Missing(arguments.stub))
    module, _, path = arguments.maker.partition(":")
    maker = importlib.import_module(module)
    for part in path.split("."):
        maker = getattr(maker, part)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    maker(parser, **json.loads(arguments.extra))  # type: ignore[operator]
    print(f"# {arguments.engine} {arguments.version}: the flags of its own argument parser")
    print("\n".join([*lines(parser), *variables(arguments.env, arguments.prefix or arguments.engine.upper())]))


if __name__ == "__main__":
    main()
