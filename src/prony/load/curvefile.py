"""A curve file that grows cell by cell; what it holds already is kept."""

from itertools import pairwise
from pathlib import Path

import yaml

from prony.base.errors import ConfigError
from prony.base.files import make_folder, write_atomic
from prony.base.yamldoc import load_yaml
from prony.facts.curves import Cell, Curve, Thinking, falls, read_curve


def add_cell(path: Path, cell: Cell, checkpoint: str, method: str, drafter: str) -> tuple[str, ...]:
    """Begin or extend a curve by one cell; return what is odd about it now, also what only chance explains.

    Raises ConfigError when the file is of another checkpoint, method or drafter, LaunchError when it can't be written.
    """
    old = read_curve(load_yaml(path)) if path.exists() else _begun(checkpoint, method, drafter)
    if not old.serves(checkpoint) or (old.method, old.drafter) != (method, drafter):
        raise ConfigError(
            f"{path}: is the curve of {', '.join(old.models)} with {old.method} by {old.drafter}, "
            f"this cell is of {checkpoint} with {method} by {drafter}",
            fix="name another file with --curve",
        )
    raw = [one for one in old.raw if (one.thinking, one.steps) != (cell.thinking, cell.steps)] + [cell]
    raw.sort(key=lambda one: (one.thinking, one.steps))
    curve = old.model_copy(
        update={"raw": tuple(raw), "thinking_on": _lengths(raw, "on"), "thinking_off": _lengths(raw, "off") or None}
    )
    make_folder(path.parent)
    write_atomic(path, _text(curve).encode())
    return (*falls(curve), *_within_chance(raw))


def _begun(checkpoint: str, method: str, drafter: str) -> Curve:
    return Curve(
        schema_version="golden-al/1",
        name=f"{checkpoint.rpartition('/')[2].lower()}/{method}",
        models=(checkpoint,),
        method=method,
        drafter=drafter,
        measured_on=checkpoint,
        engine="as served",
        dataset="prompts of one's own, one request at a time",
        sampling="as the prompts say",
        source="prony acceptance collect",
    )


def _lengths(raw: list[Cell], thinking: Thinking) -> dict[int, float]:
    return {cell.steps: round(cell.length, 2) for cell in raw if cell.thinking == thinking}


def _within_chance(raw: list[Cell]) -> tuple[str, ...]:
    """Say where two neighbours cannot be told apart: their intervals overlap."""
    return tuple(
        f"thinking {first.thinking}: {first.steps} and {second.steps} drafted tokens cannot be told apart "
        f"({first.length:.3f} and {second.length:.3f}, intervals overlap)"
        for first, second in pairwise(raw)
        if first.thinking == second.thinking and first.ci95 and second.ci95 and second.ci95[0] < first.ci95[1]
    )


def _text(curve: Curve) -> str:
    plain = curve.model_dump(mode="json", by_alias=True, exclude={"file"}, exclude_none=True)
    for name in ("thinking_on", "thinking_off"):
        plain[name] = {int(steps): length for steps, length in plain.get(name, {}).items()}
    plain = {name: value for name, value in plain.items() if value not in ({}, [])}
    return yaml.safe_dump(plain, sort_keys=False, width=120)
