"""What there is to look at: models and their workloads, and the pair a page opens on."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from prony.base.model import Frozen
from prony.measure.result import Row
from prony.view.series import measured_here
from prony.view.words import workload_id, workload_label


class WorkloadChoice(Frozen):
    """One workload of a model: how many rows it has, how many of them were measured here."""

    id: str
    label: str
    rows: int
    measured: int


class ModelChoice(Frozen):
    """One model and its workloads, the one with most rows first."""

    model: str
    workloads: tuple[WorkloadChoice, ...]


class Catalogue(Frozen):
    """Models with data, the one to open on first."""

    models: tuple[ModelChoice, ...]


def catalogue(rows: Sequence[Row]) -> Catalogue:
    """List models and workloads, the one to open on first: the newest measured here, else the newest of all."""
    by_model: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_model[row.model].append(row)
    newest = {
        model: max((measured_here(row), row.measured_at) for row in members) for model, members in by_model.items()
    }
    ordered = sorted(sorted(by_model), key=lambda model: newest[model], reverse=True)
    return Catalogue(models=tuple(ModelChoice(model=model, workloads=_workloads(by_model[model])) for model in ordered))


def select(rows: Iterable[Row], model: str = "", workload: str = "") -> tuple[Row, ...]:
    """Return the rows of one model and workload; an empty name keeps all."""
    return tuple(
        row for row in rows if (not model or row.model == model) and (not workload or workload_id(row) == workload)
    )


def _workloads(rows: Sequence[Row]) -> tuple[WorkloadChoice, ...]:
    by_id: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_id[workload_id(row)].append(row)
    choices = [
        WorkloadChoice(
            id=name,
            label=workload_label(members[0]),
            rows=len(members),
            measured=sum(measured_here(row) for row in members),
        )
        for name, members in by_id.items()
    ]
    return tuple(sorted(choices, key=lambda choice: (-choice.measured, -choice.rows, choice.id)))
