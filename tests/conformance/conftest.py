"""What the reference's cases share."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from prony.spec.compat import generate

_READ: dict[tuple[bytes | Path, ...], generate.Catalogue] = {}
_LOAD = generate.load_catalogue


def _load_once(configs: Sequence[Path], runner_config: Path) -> generate.Catalogue:
    """Read files of the same bytes once; what cannot be read fails each time."""
    files = tuple(path.read_bytes() if path.is_file() else path for path in (*configs, runner_config))
    if files not in _READ:
        _READ[files] = _LOAD(configs, runner_config)
    return _READ[files]


@pytest.fixture(autouse=True)
def masters_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most cases name the same two big masters."""
    monkeypatch.setattr(generate, "load_catalogue", _load_once)
