"""`prony matrix full-sweep` and `test-config`: the reference's command lines, rows and exit codes."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.console import print_data, say

if TYPE_CHECKING:
    from prony.spec.compat.evals import EvalMode
    from prony.spec.compat.expand import JsonRow, Limits

_SCENARIOS = ("fixed-seq-len", "agentic-coding")


def add_compat_parsers(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add both commands."""
    full = verbs.add_parser(
        "full-sweep",
        help="rows as the reference prints them, by filters",
        description="Print the rows that InferenceX's generator prints for the same options, as one line of JSON.",
        epilog="example: prony matrix full-sweep --config-files configs/amd-master.yaml --single-node",
    )
    _add_common(full)
    for name in ("--model-prefix", "--precision", "--framework", "--runner-type"):
        full.add_argument(name, nargs="+")
    full.add_argument("--step-size", type=int, default=2)
    for name in ("--min-conc", "--max-conc", "--max-tp", "--max-ep"):
        full.add_argument(name, type=int)
    full.add_argument("--single-node", action="store_true")
    full.add_argument("--multi-node", action="store_true")
    full.set_defaults(run=lambda arguments: _run(full, arguments, _full_sweep))
    test = verbs.add_parser(
        "test-config",
        help="rows as the reference prints them, by keys",
        description="Print the rows that InferenceX's generator prints for these keys, as one line of JSON.",
        epilog="example: prony matrix test-config --config-files configs/amd-master.yaml --config-keys 'dsr1-*'",
    )
    _add_common(test)
    test.add_argument("--config-keys", nargs="+", required=True)
    test.add_argument("--conc", nargs="+", type=int)
    test.set_defaults(run=lambda arguments: _run(test, arguments, _test_config))


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config-files", nargs="+", required=True, type=Path)
    parser.add_argument("--runner-config", type=Path, default=Path("configs/runners.yaml"), metavar="FILE")
    evals = parser.add_mutually_exclusive_group()
    evals.add_argument("--no-evals", action="store_true")
    evals.add_argument("--evals-only", action="store_true")
    parser.add_argument("--all-evals", action="store_true")
    parser.add_argument("--runner-node-filter")
    parser.add_argument("--scenario-type", nargs="+", choices=_SCENARIOS, metavar="KIND")
    parser.add_argument("--seq-lens", nargs="+", choices=("1k1k", "8k1k"))


def _run(
    parser: argparse.ArgumentParser,
    arguments: argparse.Namespace,
    rows: Callable[[argparse.Namespace], "list[JsonRow]"],
) -> int:
    from prony.base.errors import PronyError

    _check(parser, arguments)
    import gc
    import json
    import os

    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for some costs more than all rows do
    gc.disable()  # rows only grow in number, and then the process ends: looking for garbage is in vain
    try:
        print_data(json.dumps(rows(arguments)) + "\n")
    except PronyError as error:
        say(f"prony: {error}", sys.stderr)
        return 1
    finally:
        gc.freeze()
        gc.enable()
    return 0


def _check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    if arguments.all_evals and arguments.no_evals:
        parser.error("--all-evals cannot be used with --no-evals")
    if getattr(arguments, "step_size", 2) <= 1:
        parser.error("--step-size must be greater than 1")
    low, high = getattr(arguments, "min_conc", None), getattr(arguments, "max_conc", None)
    if low is not None and high is not None and low > high:
        parser.error("--min-conc must be less than or equal to --max-conc")


def _evals(arguments: argparse.Namespace) -> "EvalMode":
    if arguments.all_evals:
        return "all"
    return "none" if arguments.no_evals else "only" if arguments.evals_only else "default"


def _tuple(values: Any) -> Any:
    return None if values is None else tuple(values)


def _full_sweep(arguments: argparse.Namespace) -> "list[JsonRow]":
    from prony.spec.compat.generate import FullSweep, full_sweep, load_catalogue

    asked = FullSweep(
        model_prefix=_tuple(arguments.model_prefix),
        precision=_tuple(arguments.precision),
        framework=_tuple(arguments.framework),
        runner_type=_tuple(arguments.runner_type),
        single_node=arguments.single_node,
        multi_node=arguments.multi_node,
        node_filter=arguments.runner_node_filter,
        limits=_limits(arguments),
        evals=_evals(arguments),
    )
    return full_sweep(load_catalogue(arguments.config_files, arguments.runner_config), asked)


def _test_config(arguments: argparse.Namespace) -> "list[JsonRow]":
    from prony.spec.compat.generate import TestConfig, load_catalogue, test_config

    asked = TestConfig(
        keys=tuple(arguments.config_keys),
        node_filter=arguments.runner_node_filter,
        limits=_limits(arguments),
        evals=_evals(arguments),
    )
    return test_config(load_catalogue(arguments.config_files, arguments.runner_config), asked)


def _limits(arguments: argparse.Namespace) -> "Limits":
    from prony.spec.compat.expand import Limits

    return Limits(
        seq_lens=_tuple(arguments.seq_lens),
        scenarios=_tuple(arguments.scenario_type),
        step=getattr(arguments, "step_size", 2),
        min_conc=getattr(arguments, "min_conc", None),
        max_conc=getattr(arguments, "max_conc", None),
        max_tp=getattr(arguments, "max_tp", None),
        max_ep=getattr(arguments, "max_ep", None),
        concurrencies=_tuple(getattr(arguments, "conc", None)),
    )
