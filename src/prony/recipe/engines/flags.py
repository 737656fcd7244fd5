"""Tables of the flags that an engine takes, and the check of a recipe's arguments against them."""

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prony.base.errors import ConfigError

Kind = Literal["int", "float", "text", "switch"]
_READERS: dict[str, type] = {"int": int, "float": float, "text": str}
_KINDS = {"int": "a whole number", "float": "a number"}
_LARGEST = 2**31 - 1  # C's int
_LISTED = 60


@dataclass(frozen=True)
class Flag:
    """One flag of an engine. `owner` says who sets it when that is not the recipe's `args`.

    A name that ends with "." stands for all names that begin so, of any kind. repeats: several values repeat the flag;
    many: they follow it, as words. least, most: bounds of its number, both allowed; without them what a C int holds.
    """

    name: str
    kind: Kind
    help: str
    default: int | float | str | None = None
    choices: tuple[str, ...] = ()
    repeats: bool = False
    required: bool = False
    owner: str = ""
    least: int | float | None = None
    most: int | float | None = None
    many: bool = False

    def fault(self, value: str) -> str | None:
        """Say what a value must be when it is not, or None."""
        if self.choices and value not in self.choices:
            return f"one of: {', '.join(self.choices)}"
        if self.kind == "text":
            return None
        try:
            number = _READERS[self.kind](value)
        except ValueError:
            return _KINDS[self.kind]
        most = _LARGEST if self.most is None else self.most
        least = -_LARGEST if self.least is None else self.least
        if least <= number <= most:
            return None
        bounds = f", {least} or more" if self.most is None and number < least else f" from {least} to {most}"
        return f"{_KINDS[self.kind]}{bounds}"


@dataclass(frozen=True)
class Arg:
    """One argument of a role, resolved: no value is a bare flag, several repeat it. `place` is file:line."""

    name: str
    values: tuple[str, ...]
    place: str


def add_to_parser(parser: argparse.ArgumentParser, flags: Sequence[Flag]) -> None:
    """Give a command line exactly the flags of a table."""
    for flag in flags:
        options: dict[str, Any] = {"help": flag.help, "required": flag.required}
        if flag.kind == "switch":
            options["action"] = "store_true"
        else:
            options |= {"type": _READERS[flag.kind], "default": flag.default, "choices": flag.choices or None}
            options |= {"action": "append"} if flag.repeats else {}
        parser.add_argument(f"--{flag.name}", **options)


def check_args(args: Sequence[Arg], flags: Sequence[Flag], engine: str) -> None:
    """Raise ConfigError for the first argument that the engine doesn't take from a recipe."""
    known = {flag.name: flag for flag in flags}
    open_names = sorted(flag.name for flag in flags if not flag.owner)
    for arg in args:
        flag = known.get(arg.name) or known.get(arg.name[: arg.name.find(".") + 1])
        if flag is None:
            guess = difflib.get_close_matches(arg.name.lstrip("-").replace("_", "-"), open_names, n=1)
            hint = f" (did you mean '{guess[0]}'?)" if guess else ""
            raise ConfigError(
                f"{arg.place}: '{arg.name}' is not a flag of {engine}{hint}",
                allowed=", ".join(open_names) if len(open_names) <= _LISTED else _near(arg.name, open_names),
                fix="if the image's engine has it, add it to the recipe: flags: {NAME: int, float, text or switch}",
            )
        if flag.owner:
            raise ConfigError(
                f"{arg.place}: '{arg.name}' is not set in args: it comes from {flag.owner}", fix="delete this line"
            )
        _check_values(arg, flag)


def _check_values(arg: Arg, flag: Flag) -> None:
    if flag.kind == "switch" and arg.values:
        raise ConfigError(f"{arg.place}: '{arg.name}' takes no value (given: {arg.values[0]})", fix="write true")
    if flag.kind != "switch" and not arg.values and not flag.name.endswith("."):
        raise ConfigError(f"{arg.place}: '{arg.name}' needs a value", allowed=f"{flag.kind}: {flag.help}".strip(": "))
    if len(arg.values) > 1 and not (flag.repeats or flag.many or flag.name.endswith(".")):
        raise ConfigError(f"{arg.place}: '{arg.name}' can be given once only", fix="write one value, not a list")
    for value in arg.values:
        fault = flag.fault(value)
        if fault:
            raise ConfigError(f"{arg.place}: '{arg.name}' can't be {value}", allowed=fault, fix=flag.help)


def _near(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=5, cutoff=0.5)
    return f"{len(names)} flags, the nearest: {', '.join(near)}" if near else f"{len(names)} flags, none like it"


def argv_of(args: Sequence[Arg], flags: Sequence[Flag] = ()) -> tuple[str, ...]:
    """Return `--name value` words, in the order of the names; several values of a flag with `many` follow it once."""
    many = {flag.name for flag in flags if flag.many}
    words: list[str] = []
    for arg in sorted(args, key=lambda arg: arg.name):
        if not arg.values:
            words.append(f"--{arg.name}")
        elif arg.name in many:
            words += [f"--{arg.name}", *arg.values]
        else:
            words += [word for value in arg.values for word in (f"--{arg.name}", value)]
    return tuple(words)
