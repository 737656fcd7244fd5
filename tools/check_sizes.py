"""Fail when a function is longer than 50 lines or a module longer than 400."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FUNCTION_LINES = 50
MODULE_LINES = 400


def faults(path: Path) -> Iterator[str]:
    """Yield one line per function or module that is too long."""
    text = path.read_text(encoding="utf-8")
    if text.count("\n") > MODULE_LINES:
        yield f"{path}: {text.count(chr(10))} lines (limit {MODULE_LINES})"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{path}:{node.lineno} {node.name}: {length} lines (limit {FUNCTION_LINES})"


def main() -> int:
    """Check src, tests, bench and tools."""
    found = [
        fault
        for root in ("src", "tests", "bench", "tools")
        for path in sorted(Path(root).rglob("*.py"))
        for fault in faults(path)
    ]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
