"""`prony matrix diff`: which points a change adds, removes and alters, and what it may book."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.base.text import one_line
from prony.cli.console import print_data, say
from prony.cli.findings import print_json

if TYPE_CHECKING:
    from prony.gate.cost import Booking
    from prony.gate.diff import Altered, MatrixDiff
    from prony.gate.document import Config
    from prony.spec.point import Point

DEFAULT_CONFIGS = ("configs/nvidia-master.yaml", "configs/amd-master.yaml")
DEFAULT_RUNNERS = "configs/runners.yaml"
_BOUND = "an upper bound: every job until its time limit, on whole nodes"
_ROWS = 40


def add_diff_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony matrix diff`."""
    parser = verbs.add_parser(
        "diff",
        help="points that a change adds, removes, alters",
        description="Compare two configs, or two commits with --repo, point by point. GPU-hours are an upper bound: "
        "declared time limits times devices of whole nodes.",
        epilog="example: prony matrix diff --repo . origin/main HEAD --markdown",
    )
    parser.add_argument("base", metavar="BASE", help="config file, or git ref with --repo")
    parser.add_argument("head", metavar="HEAD", help="config file, or git ref with --repo")
    parser.add_argument("--repo", type=Path, metavar="DIR", help="a git work tree; BASE and HEAD are refs in it")
    parser.add_argument("--config-files", nargs="+", metavar="PATH", help="with --repo; default: both masters")
    parser.add_argument(
        "--runner-config", metavar="FILE", help="default: runners.yaml beside HEAD; with --repo a path in it"
    )
    parser.add_argument("--base-runner-config", metavar="FILE", help="default: that of HEAD")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object for programs")
    form.add_argument("--markdown", action="store_true", help="text for a comment on a pull request")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare and print. Raises ConfigError."""
    from prony.gate.diff import diff

    base, head = _both_refs(arguments) if arguments.repo else _both_files(arguments)
    _require_readable(base, head)
    difference = diff(base, head)
    if arguments.json:
        print_json({**difference.model_dump(mode="json"), "gpu_hours_are": _BOUND})
    elif arguments.markdown:
        print_data("\n".join(markdown(difference)) + "\n")
    else:
        for line in text(difference):
            say(line)
    return 0


def _both_files(arguments: argparse.Namespace) -> "tuple[Config, Config]":
    from prony.gate.document import file_source, read_config

    runners = Path(arguments.runner_config or Path(arguments.head).parent / "runners.yaml")
    before = Path(arguments.base_runner_config or runners)
    return (
        read_config([file_source(Path(arguments.base))], file_source(before)),
        read_config([file_source(Path(arguments.head))], file_source(runners)),
    )


def _both_refs(arguments: argparse.Namespace) -> "tuple[Config, Config]":
    from prony.gate.check import Layout, read_at
    from prony.gate.git import find_checkout

    checkout = find_checkout(arguments.repo)
    configs = tuple(arguments.config_files or DEFAULT_CONFIGS)
    runners = arguments.runner_config or DEFAULT_RUNNERS
    before = Layout(configs=configs, runners=arguments.base_runner_config or runners)
    return (
        read_at(checkout, before, checkout.commit(arguments.base)),
        read_at(checkout, Layout(configs=configs, runners=runners), checkout.commit(arguments.head)),
    )


def _require_readable(*configs: "Config") -> None:
    from prony.base.errors import ConfigError

    for config in configs:
        for finding in config.findings:
            if finding.where and finding.where.file in config.unreadable:
                raise ConfigError(f"{finding.where}: {finding.message}", allowed=finding.allowed, fix=finding.fix)


def counts(difference: "MatrixDiff") -> str:
    """Return the numbers in one line."""
    parts = ("added", "removed", "altered", "renamed")
    numbers = ", ".join(f"{len(getattr(difference, name))} {name}" for name in parts)
    return f"points: {numbers}, {difference.unchanged} unchanged"


def cost(booking: "Booking") -> str:
    """Return what jobs may book, in words."""
    from prony.base.text import printable
    from prony.base.units import counted

    unknown = printable(", ".join(booking.unknown_nodes))
    tail = f"; node sizes not known, devices in use counted: {unknown}" if unknown else ""
    return f"{counted(booking.jobs, 'job')}, at most {booking.gpu_hours:,.0f} GPU-hours ({_BOUND}{tail})"


def text(difference: "MatrixDiff") -> Iterator[str]:
    """Yield lines for a terminal."""
    for sign, points in (("+", difference.added), ("-", difference.removed)):
        yield from (one_line(f"{sign} {what}  conc {conc}") for what, conc in _grouped(points))
    for sign, pairs in (("~", difference.altered), (">", difference.renamed)):
        yield from (one_line(f"{sign} {what}  conc {conc}") for what, conc in _grouped_pairs(pairs))
    yield from (one_line(f"? {line}") for line in difference.not_expanded)
    yield counts(difference)
    if difference.to_run:
        yield f"to run: {cost(difference.booking)}"


def markdown(difference: "MatrixDiff") -> Iterator[str]:
    """Yield lines of GitHub Markdown."""
    yield f"**Matrix** {counts(difference)}"
    yield ""
    if difference.to_run:
        yield f"To run: {cost(difference.booking)}."
        yield ""
    rows = [("added", *row) for row in _grouped(difference.added)]
    rows += [("removed", *row) for row in _grouped(difference.removed)]
    rows += [("altered", *row) for row in _grouped_pairs(difference.altered)]
    rows += [("renamed", *row) for row in _grouped_pairs(difference.renamed)]
    if rows:
        yield "| | what | concurrency |"
        yield "|---|---|---|"
        yield from (f"| {change} | {_cell(what)} | {conc} |" for change, what, conc in rows[:_ROWS])
    if len(rows) > _ROWS:
        yield f"\n{len(rows) - _ROWS} more rows: `prony matrix diff` shows them."
    yield from (f"\nnot compared: {_cell(line)}" for line in difference.not_expanded)


def _cell(value: str) -> str:
    safe = one_line(value).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")
    return safe.replace("<", "&lt;").replace("@", "@\u200b")


def _grouped(points: "Sequence[Point]") -> list[tuple[str, str]]:
    """Return one line per group of points that differ in concurrency only."""
    return _joined([(what(point), point.concurrency) for point in points])


def _grouped_pairs(pairs: "Sequence[Altered]") -> list[tuple[str, str]]:
    return _joined([(f"{what(pair.after)}: {_changes(pair)}", pair.after.concurrency) for pair in pairs])


def _joined(items: Sequence[tuple[str, int]]) -> list[tuple[str, str]]:
    groups: dict[str, list[str]] = {}
    for name, concurrency in items:
        groups.setdefault(name, []).append(str(concurrency))
    return [(name, ", ".join(values)) for name, values in groups.items()]


def what(point: "Point") -> str:
    """Return a point in words, without its concurrency."""
    load = point.workload
    lengths = f"{load.isl}/{load.osl}" if load.kind == "fixed-seq-len" else "agentic"
    spec = "" if point.spec_decoding == "none" else f" {point.spec_decoding}"
    offload = "" if point.kv_offload.mode == "none" else f" kv-{point.kv_offload.mode}-{point.kv_offload.backend}"
    return f"{point.config_key} {lengths} {point.topology.label}{spec}{offload}"


def _changes(pair: "Altered") -> str:
    return ", ".join(_change(pair, name) for name in pair.fields)


def _change(pair: "Altered", name: str) -> str:
    before, after = getattr(pair.before, name), getattr(pair.after, name)
    if isinstance(before, str | int | None) and isinstance(after, str | int | None):
        return f"{name.replace('_', '-')} {before} → {after}"
    return "settings" if name == "topology" else name.replace("_", "-")
