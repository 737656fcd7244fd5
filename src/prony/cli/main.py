"""The entry point: parse, dispatch to one noun, turn faults into one message and an exit code.

Imports stand in the functions, so that an interrupt at any moment after the first one ends as an interrupt.
"""

import sys
from typing import TYPE_CHECKING, NoReturn, Protocol

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

INTERRUPTED = 130


class Noun(Protocol):
    """A module of this package: its parser, and the handler that the parser names in `run`."""

    def add_parser(self, nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None: ...


NOUNS = (
    *("run", "demo", "load", "check", "lint", "matrix", "changelog", "recipe", "acceptance", "plan"),
    *("try", "job", "results", "report", "serve"),
)
_MODULES = {"try": "trial"}  # a word of the language names no module


def build_parser(nouns_wanted: "Sequence[str]" = NOUNS) -> "argparse.ArgumentParser":
    """Return the command line of some nouns; handlers import what they need only when they run."""
    import importlib

    from prony import __version__
    from prony.cli.arguments import Parser

    parser: argparse.ArgumentParser = Parser(
        prog="prony",
        description="Continuous benchmarking for LLM inference serving.",
        epilog="Exit codes: 0 done, 2 your configuration, 3 the launch or the output, 4 a result is not valid, "
        "130 interrupted. A reader of the output that goes away (| head) changes none of them.",
    )
    parser.add_argument("--version", action="version", version=f"prony {__version__}")
    nouns = parser.add_subparsers(dest="noun", metavar="COMMAND", title="commands")
    for name in nouns_wanted:
        module: Noun = importlib.import_module(f"prony.cli.{_MODULES.get(name, name)}")
        module.add_parser(nouns)
    return parser


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code."""
    try:
        from prony.cli.streams import prepare, settle

        prepare()
        return settle(_dispatch(argv))
    except KeyboardInterrupt:
        _interrupted()


def _dispatch(argv: "Sequence[str] | None") -> int:
    from prony.base.errors import PronyError
    from prony.cli.console import say

    try:
        words = sys.argv[1:] if argv is None else argv
        named = words[:1] if words and words[0] in NOUNS else NOUNS  # one noun never needs the others' modules
        arguments = build_parser(named).parse_args(words)
        if arguments.noun is None:
            from prony.cli.welcome import welcome

            return welcome()
        code: int = arguments.run(arguments)
        return code
    except PronyError as error:
        say(f"prony: {error}", sys.stderr)
        return error.exit_code
    except SystemExit as end:  # argparse: help was shown, or an argument is wrong
        return end.code if isinstance(end.code, int) else 1


def _interrupted() -> NoReturn:
    """End with 130. A plain return would not do: CPython kills itself with SIGINT at its end when an interrupt has
    passed through an exec of source text, as dataclasses do while they are imported."""
    import os
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    print("prony: interrupted", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)
