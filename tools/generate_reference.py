"""Write docs/reference/{cli,engines,metrics}.md from the code; with --check, fail when they differ from it."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from prony.cli.main import build_parser
from prony.measure.registry import METRICS
from prony.recipe.engines.engine import Engine
from prony.recipe.engines.table import ENGINES

FEW_FLAGS = 60

REFERENCE = Path("docs/reference")


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and all that are below it, in the order of their declaration."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from parsers(child)


def cli_page() -> str:
    """Return the page of all commands, as their --help prints it."""
    parts = ["# Commands\n\nGenerated from the code. Every command prints this with `--help`.\n"]
    parts += [f"## {one.prog}\n\n```text\n{one.format_help().rstrip()}\n```\n" for one in parsers(build_parser())]
    return "\n".join(parts)


def metrics_page() -> str:
    """Return the page of all metrics."""
    parts = [
        "# Metrics\n\nGenerated from the registry. Units are those of storage, API and exports.\n",
        "| key | unit | better | per | definition | meaning |",
        "|---|---|---|---|---|---|",
    ]
    parts += [
        f"| `{m.key}` | {m.unit} | {m.better} | {m.denominator} | `{m.definition}` "
        f"| **{m.en}** ({m.zh}). {m.explain_en} |"
        for m in METRICS
    ]
    return "\n".join(parts) + "\n"


def engines_page() -> str:
    """Return the page of what each engine can do, and of the flags that it takes in a recipe's args."""
    parts = [
        "# Engines\n\nGenerated from the code. A flag with an owner is set by it, not in `args`; all others of the"
        " table are free. A flag that an image has beyond its table goes into the recipe's `flags`.\n"
    ]
    for engine in ENGINES.values():
        flags = engine.flags("")
        few = len(flags) <= FEW_FLAGS
        told = [flag for flag in flags if few or flag.owner]
        counted = "" if few else f" {len(flags)} flags are known; those with an owner:"
        parts.append(f"## {engine.name}\n\n{_abilities(engine)}{counted}\n")
        parts.append("| flag | kind | default | owner | meaning |\n|---|---|---|---|---|")
        parts += [
            f"| `{flag.name}` | {' · '.join(flag.choices) or flag.kind} "
            f"| {'' if flag.default is None else flag.default} | {flag.owner} | {flag.help} |"
            for flag in told
        ]
    return "\n".join(parts) + "\n"


def _abilities(engine: Engine) -> str:
    lists = (
        ("Roles", engine.roles),
        ("drafting", engine.spec_methods),
        ("KV offload", engine.offload_backends),
        ("KV transfer", engine.kv_transfers),
        ("routers", engine.routers),
    )
    told = "; ".join(f"{what}: {', '.join(sorted(some)) or 'none'}" for what, some in lists)
    golden = "can" if engine.golden else "cannot"
    return f"{told}. Acceptance {golden} be simulated."


def errors_page() -> str:
    """Return the page of faulty inputs; tests compare every word of it with what the commands print."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.gate.faulty import FAULTY, MASTER, RUNNERS

    parts = [
        "# Faulty inputs and what is said about them\n",
        "Generated from the data of the tests. Each case changes one thing in the two files at the end of this page.\n",
        f"{len(FAULTY)} cases. Exit 2 is an error, 0 a warning.\n",
        "| what is wrong | input | command | exit | what is printed |",
        "|---|---|---|---|---|",
    ]
    parts += [
        f"| {_cell(case.what)} | {_code(case.shown)} | `prony {_cell(' '.join(case.argv))}` | {case.exit_code} "
        f"| {_code(case.said)} |"
        for case in FAULTY
    ]
    parts += [
        f"\n`{name}`\n\n```yaml\n{text}```" for name, text in (("master.yaml", MASTER), ("runners.yaml", RUNNERS))
    ]
    return "\n".join(parts) + "\n"


def _code(text: str) -> str:
    return "<br>".join(f"`{_cell(line.strip())}`" for line in text.splitlines() if line.strip())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """Write the pages, or compare them with what stands in docs/reference."""
    os.environ["COLUMNS"] = "100"
    pages = {
        "cli.md": cli_page(),
        "engines.md": engines_page(),
        "metrics.md": metrics_page(),
        "errors.md": errors_page(),
    }
    if "--check" not in sys.argv:
        REFERENCE.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (REFERENCE / name).write_text(text, encoding="utf-8")
        return 0
    stale = [name for name, text in pages.items() if not _same(REFERENCE / name, text)]
    for name in stale:
        print(f"{REFERENCE / name}: differs from the code; run: .venv/bin/python tools/generate_reference.py")
    return 1 if stale else 0


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
