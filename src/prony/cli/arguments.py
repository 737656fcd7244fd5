"""Options that several commands share, and commands as they are typed; light, since every parser is built at start."""

import argparse
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

DEFAULT_STORE = Path("prony-out/store.db")
_LARGEST = 2**31 - 1
# A command in a sentence; not where a path or `python -m` stands in front already.
_COMMAND = re.compile(
    r"(?<![\w./-])(?<!-m )prony(?= (?:run|demo|load|check|lint|matrix|changelog|job|results|report|serve|--help)\b)"
)


class Parser(argparse.ArgumentParser):
    """A parser whose help fits the terminal and names this very program in its examples; so do its subparsers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "formatter_class": _Help})

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        super()._print_message(as_typed(message), file)


class _Help(argparse.HelpFormatter):
    """Folds prose to the width; lines that are indented (examples) stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        kept: list[str] = []
        prose: list[str] = []
        for line in [*text.strip().split("\n"), ""]:
            if line and not line.startswith(" "):
                prose.append(line)
                continue
            kept += textwrap.wrap(" ".join(prose), width, initial_indent=indent, subsequent_indent=indent)
            kept.append(line)
            prose = []
        return "\n".join(kept[:-1])


def whole(least: int, most: int = _LARGEST) -> Callable[[str], int]:
    """Return an argparse type: a whole number from `least` to `most`."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 12 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def add_config_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add CONFIG… and the options that say where its companions are."""
    several = "+" if required else "*"
    parser.add_argument("config", nargs=several, type=Path, metavar="CONFIG", help="master config (YAML)")
    parser.add_argument("--keys", nargs="+", metavar="KEY", help="only these config keys; * and ? match")
    parser.add_argument("--runner-config", type=Path, metavar="FILE", help="default: runners.yaml beside CONFIG")


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that also resolve recipes and load."""
    parser.add_argument("--load", type=Path, metavar="FILE", help="load rules; default: load.yaml beside CONFIG")
    parser.add_argument("--recipes", type=Path, metavar="DIR", help="default: recipes/ beside CONFIG")


def add_store_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where results are kept."""
    parser.add_argument("--store", default=str(DEFAULT_STORE), metavar="PATH", help=f"default: {DEFAULT_STORE}")


def command(*words: object, store: str = str(DEFAULT_STORE)) -> str:
    """Return a prony command that a shell takes as it stands; the store is named where it is not the default one."""
    option = () if store == str(DEFAULT_STORE) else ("--store", store)
    return f"{program()} {shlex.join(str(word) for word in (*words, *option))}"


def program() -> str:
    """Return what starts this very program in this shell: prony where PATH leads here, else as it was started."""
    started = Path(sys.argv[0])
    here = {(Path(sys.prefix) / "bin" / "prony").resolve(), started.resolve()}
    found = shutil.which("prony")
    if found and Path(found).resolve() in here:
        return "prony"
    if started.name == "prony":
        return shlex.quote(sys.argv[0])
    if started.parts[-2:] == ("prony", "__main__.py"):
        return f"{shlex.quote(_python())} -m prony"
    return "prony"  # inside another program, a test for one


def _python() -> str:
    for name in ("python", "python3"):
        found = shutil.which(name)
        if found and Path(found).absolute() == Path(sys.executable):
            return name
    short = os.path.relpath(sys.executable)
    return sys.executable if short.startswith("..") else short


def as_typed(text: str) -> str:
    """Return text with the prony commands in it as this shell takes them."""
    name = program() if "prony " in text else "prony"
    return text if name == "prony" else _COMMAND.sub(lambda _: name, text)


def again(arguments: argparse.Namespace, out: Path) -> str:
    """Return the command that goes on with a sweep, with every option that it was started with."""
    words: list[object] = ["run", *arguments.config]
    if arguments.keys:
        words += ["--keys", *arguments.keys]
    for option in ("runner_config", "load", "recipes"):
        if (value := getattr(arguments, option)) is not None:
            words += [f"--{option.replace('_', '-')}", value]
    return command(*words, "--out", out, "--resume", store=arguments.store)
