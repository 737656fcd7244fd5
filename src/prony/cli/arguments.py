"""Options that several commands share, and commands as they are typed; light, since every parser is built at start."""

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path

DEFAULT_STORE = Path("prony-out/store.db")
_LARGEST = 2**31 - 1


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
    return shlex.join(str(word) for word in ("prony", *words, *option))


def again(arguments: argparse.Namespace, out: Path) -> str:
    """Return the command that goes on with a sweep, with every option that it was started with."""
    words: list[object] = ["run", *arguments.config]
    if arguments.keys:
        words += ["--keys", *arguments.keys]
    for option in ("runner_config", "load", "recipes"):
        if (value := getattr(arguments, option)) is not None:
            words += [f"--{option.replace('_', '-')}", value]
    return command(*words, "--out", out, "--resume", store=arguments.store)
