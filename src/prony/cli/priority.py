"""`prony matrix priority` and `canary`: what runs first."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.arguments import add_config_arguments, whole
from prony.cli.console import print_data, say

if TYPE_CHECKING:
    from prony.spec.matrix import Matrix
    from prony.spec.policy import Context, Policy


def add_priority_parsers(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add both commands."""
    _add_priority(verbs)
    canary = verbs.add_parser(
        "canary",
        help="the points that run before all others",
        description="Print the cheapest point of every group of equal image, SKU and kind of topology: when it fails, "
        "the rest of its group need not be tried.",
        epilog="example: prony matrix canary examples/local/master.yaml",
    )
    add_config_arguments(canary)
    canary.add_argument("--json", action="store_true", help="one JSON object per canary and line")
    canary.add_argument(
        "--reference-canary",
        action="store_true",
        help="the row that InferenceX would choose, as JSON, or null: only single-node fixed-length rows count",
    )
    canary.set_defaults(run=show_canaries)


def _add_priority(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "priority",
        help="scores by a policy file",
        description="Score the points of configs, highest first; or, without CONFIG, write priority and queue token "
        "into the rows of JSON that InferenceX's tools print.",
        epilog="examples: prony matrix priority --policy ci-priority.yaml master.yaml\n"
        "  prony matrix full-sweep … | prony matrix priority --policy ci-priority.yaml --event-name push",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_config_arguments(parser, required=False)
    parser.add_argument("--policy", type=Path, default=Path("configs/ci-priority.yaml"), metavar="FILE")
    parser.add_argument("--event-name", default="", metavar="EVENT", help="as in GitHub: push, pull_request")
    parser.add_argument("--labels-json", default="[]", metavar="JSON", help="a list of the pull request's labels")
    parser.add_argument("--criteria-json", default="", metavar="JSON", help="a list of the facts that may count")
    parser.add_argument("--queue-namespace", default="local", metavar="TEXT", help="goes into queue tokens")
    parser.add_argument("--pr-number", type=whole(0), metavar="N", help="0 is none, as workflows write it")
    parser.add_argument("--input", type=Path, metavar="FILE", help="rows; default: standard input")
    parser.add_argument("--json", action="store_true", help="with CONFIG: one JSON object per point and line")
    parser.set_defaults(run=show_priorities)


def show_priorities(arguments: argparse.Namespace) -> int:
    """Score points, or annotate rows. Rows: exit code 1 for what is wrong, as the reference has it."""
    from prony.base.errors import PronyError
    from prony.spec.policy import load_policy

    if arguments.config:
        policy = load_policy(arguments.policy)
        return _show_points(arguments, policy, _context(arguments))
    try:
        from prony.spec.compat.priority import annotate

        policy = load_policy(arguments.policy)
        rows = annotate(
            _input(arguments.input),
            policy,
            _context(arguments),
            arguments.queue_namespace,
            arguments.pr_number or None,
        )
    except PronyError as error:
        say(f"prony: {error}", sys.stderr)
        return 1
    import json

    print_data(json.dumps(rows, separators=(",", ":")) + "\n")
    return 0


def _context(arguments: argparse.Namespace) -> "Context":
    from prony.spec.policy import Context

    labels = _names("--labels-json", arguments.labels_json)
    criteria = _names("--criteria-json", arguments.criteria_json)
    return Context(
        event=arguments.event_name,
        labels=frozenset(labels or ()),
        criteria=None if criteria is None else frozenset(criteria),
    )


def _names(option: str, text: str) -> list[str] | None:
    """Read a JSON list of names; None for null or nothing."""
    from prony.base.errors import ConfigError

    value = _parsed(option, text) if text.strip() else None
    if value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        return value
    raise ConfigError(f"{option}: not a list of names", allowed='["name", …] or null', fix="quote it for the shell")


def _input(path: Path | None) -> Any:
    from prony.base.errors import ConfigError

    try:
        text = path.read_bytes() if path else sys.stdin.buffer.read()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", fix="check the path") from None
    return _parsed(str(path or "standard input"), text)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice in one object: the last would silently win."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"'{twice}' stands twice in one object")
    return found


def _parsed(what: str, text: str | bytes) -> Any:
    import json

    from prony.base.errors import ConfigError

    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{what}: not JSON: {error}", fix="give the output of the generator") from None


def _matrix(arguments: argparse.Namespace) -> "Matrix":
    from prony.cli.inputs import find_inputs, read_matrix

    return read_matrix(find_inputs(arguments), unlisted="note")


def _show_points(arguments: argparse.Namespace, policy: "Policy", context: "Context") -> int:
    from prony.base.model import canonical_json, digest
    from prony.cli.columns import Column, print_table
    from prony.spec.policy import facts_of_point, score

    scored = [(score(facts_of_point(point), policy, context), point) for point in _matrix(arguments).points]
    scored.sort(key=lambda pair: -pair[0])
    if arguments.json:
        for value, point in scored:
            plain = {"priority": f"{value:.3f}", "digest": digest(point), **point.model_dump(mode="json")}
            print_data(canonical_json(plain).decode() + "\n")
        return 0
    columns = (Column("score"), Column("point", least=24), Column("topology", least=12))
    print_table(columns, [(f"{value:.3f}", point.label, point.topology.label) for value, point in scored])
    return 0


def show_canaries(arguments: argparse.Namespace) -> int:
    """Print the canaries as a table or JSON lines, or the reference's one row."""
    if arguments.reference_canary:
        return _show_reference_canary(arguments)
    from prony.base.model import canonical_json
    from prony.cli.columns import Column, print_table
    from prony.plan.canary import canaries

    found = canaries(_matrix(arguments).points)
    if arguments.json:
        for canary in found:
            print_data(canonical_json(canary).decode() + "\n")
        return 0
    columns = (
        Column("canary", least=24), Column("image", least=12, drop=1), Column("sku"), Column("topology"),
        Column("GPU-s", drop=2), Column("stands for"),
    )  # fmt: skip
    rows = [
        (one.point.label, one.group.image, one.group.sku, one.group.topology, f"{one.gpu_seconds:.0f}",
         str(one.stands_for))
        for one in found
    ]  # fmt: skip
    print_table(columns, rows)
    return 0


def _show_reference_canary(arguments: argparse.Namespace) -> int:
    import json

    from prony.cli.inputs import find_inputs
    from prony.spec.compat.canary import reference_canary
    from prony.spec.compat.generate import TestConfig, load_catalogue, test_config

    inputs = find_inputs(arguments)
    catalogue = load_catalogue(inputs.configs, inputs.runners)
    keys = inputs.keys or tuple(catalogue.entries)
    found = reference_canary(test_config(catalogue, TestConfig(keys=keys, evals="none")))
    print_data(json.dumps(found) + "\n")
    if found is None:
        say("no single-node fixed-length row: the reference has no canary here", sys.stderr)
    return 0
