"""Fail when a tracked file names a package index, a private path, or is larger than a source file should be."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# A lock or requirement file that names an index works only where that index is reached.
ADDRESSES = re.compile(r"--index-url|--extra-index-url|--find-links|\"resolved\"\s*:|(files|pypi)\.python\w*\.org")
LOCKS = ("requirements/", "package-lock.json")
SIZE_LIMIT_BYTES = 400_000  # locks, which hold a hash per file of every package, get four times that


def faults(path: Path) -> Iterator[str]:
    """Yield one line per fault of a tracked file."""
    limit = SIZE_LIMIT_BYTES * (4 if str(path).startswith(LOCKS) else 1)
    if path.stat().st_size > limit:
        yield f"{path}: {path.stat().st_size} bytes (limit {limit}); data and builds are not committed"
    if str(path).startswith(LOCKS):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if ADDRESSES.search(line):
                yield f"{path}:{number}: names an index address: {line.strip()[:80]}"


def main() -> int:
    """Check every tracked file that exists."""
    listing = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True)
    paths = [Path(line) for line in listing.stdout.splitlines()]
    found = [fault for path in paths if path.is_file() for fault in faults(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
