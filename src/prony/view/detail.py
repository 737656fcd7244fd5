"""Everything that is known of one row, with its name in words and a link where its source is one."""

from datetime import datetime

from prony.base.clock import iso
from prony.base.model import Frozen
from prony.measure.result import Row
from prony.view.chart import STALE_AFTER
from prony.view.series import Badge, badges
from prony.view.words import point_label, topology_label, workload_label


class Detail(Frozen):
    """One row for its card. run_url: the source when it is an http(s) address, else None."""

    label: str
    topology: str
    workload: str
    run_url: str | None
    badges: tuple[Badge, ...]
    row: Row


def detail(row: Row, now: datetime | None = None) -> Detail:
    """Return the card of one row. `now` marks it as stale when it is older than 30 days."""
    return Detail(
        label=point_label(row),
        topology=topology_label(row),
        workload=workload_label(row),
        run_url=row.source if row.source.startswith(("https://", "http://")) else None,
        badges=badges((row,), iso(now - STALE_AFTER) if now else ""),
        row=row,
    )
