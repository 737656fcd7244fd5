"""Points with what feasibility rules say of them, and findings gathered over points that share them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prony.base.finding import Finding, Where
from prony.base.units import counted
from prony.plan.feasibility import Status, check_point, status
from prony.plan.served import serve
from prony.recipe.catalogue import Catalogue
from prony.spec.point import Point


@dataclass(frozen=True)
class Judged:
    """One point and what stands against it."""

    point: Point
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """OK, TIGHT or IMPOSSIBLE."""
        return status(self.findings)


def judge(points: Iterable[Point], catalogue: Catalogue, places: Mapping[str, Where]) -> tuple[Judged, ...]:
    """Judge points as their recipes launch them. places: where keys stand in the master configs."""
    return tuple(
        Judged(point, check_point(point, serve(catalogue, point), where=places.get(point.config_key)))
        for point in points
    )


def gathered(judged: Sequence[Judged]) -> tuple[Finding, ...]:
    """Return errors and warnings, one for all points of a key that have the same spread, drafting and rule."""
    groups: dict[tuple[str, ...], list[tuple[Point, Finding]]] = {}
    for one in judged:
        for finding in one.findings:
            if finding.severity != "info":
                point = one.point
                name = (finding.severity, point.config_key, point.topology.label, point.spec_decoding, finding.rule)
                groups.setdefault(name, []).append((point, finding))
    return tuple(_gathered(found) for found in groups.values())


def _gathered(found: Sequence[tuple[Point, Finding]]) -> Finding:
    point, finding = found[0]
    levels = " ".join(str(level) for level in sorted({one.concurrency for one, _ in found}))
    points = f"{counted(len(found), 'point')}, conc {levels}"
    same = len({finding.message for _, finding in found}) == 1
    told = finding.message if same else f"at conc {point.concurrency}: {finding.message}"
    return finding.model_copy(update={"message": f"{point.config_key} {point.topology.label} ({points}): {told}"})
