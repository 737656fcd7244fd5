"""The entry point: parse, dispatch to one noun, turn faults into one message and an exit code."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Protocol

from prony import __version__
from prony.base.errors import PronyError


class Noun(Protocol):
    """A module of this package: its parser, and the handler that the parser names in `run`."""

    def add_parser(self, nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None: ...


NOUNS = ("run", "demo", "matrix", "job", "results", "report", "serve")


def build_parser() -> argparse.ArgumentParser:
    """Return the whole command line; handlers import what they need only when they run."""
    parser = argparse.ArgumentParser(
        prog="prony",
        description="Continuous benchmarking for LLM inference serving.",
        epilog="Exit codes: 0 done, 2 your configuration, 3 the launch, 4 a result is not valid, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"prony {__version__}")
    nouns = parser.add_subparsers(dest="noun", metavar="COMMAND", title="commands")
    for name in NOUNS:
        module: Noun = importlib.import_module(f"prony.cli.{name}")
        module.add_parser(nouns)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        if arguments.noun is None:
            from prony.cli.welcome import welcome

            return welcome()
        code: int = arguments.run(arguments)
        return code
    except PronyError as error:
        print(f"prony: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print("prony: interrupted", file=sys.stderr)
        return 130
