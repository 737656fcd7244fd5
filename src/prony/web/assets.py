"""The page's files: one set, served as they are or laid into one HTML file."""

from pathlib import Path

from prony.base.errors import LaunchError

STATIC = Path(__file__).parent / "static"
D3 = "vendor/d3.min.js"
MODULES = tuple(sorted(path.name for path in STATIC.glob("*.js")))


def text(name: str) -> str:
    """Return the text of one file under static/. Raises LaunchError when it is missing."""
    try:
        return (STATIC / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LaunchError(
            f"{STATIC / name}: the page's browser library is not there",
            fix="in a checkout type `make setup` (or `python tools/fetch_vendor.py`); else install prony again",
        ) from None


def bytes_of(name: str) -> bytes:
    """Return the content of one file under static/. Raises LaunchError when it is missing."""
    return text(name).encode()
