"""The API's answers, made from rows: what `prony serve` sends and what a report embeds, byte for byte."""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import quote, urlencode

from prony import __version__
from prony.base.errors import ConfigError
from prony.base.finding import Finding
from prony.base.model import Frozen
from prony.base.text import cell
from prony.measure.registry import METRICS, Metric, metric
from prony.measure.result import Row
from prony.store.store import StoredVersion
from prony.view.catalogue import ModelChoice, catalogue, select
from prony.view.chart import STANDARD, STATS, chart
from prony.view.detail import detail
from prony.view.series import measured_here
from prony.view.table import Table, table

CHART_KEYS = ("model", "workload", "x", "y", "x_stat", "y_stat")
_Y_CHOICES = ("tput_per_gpu", "output_tput_per_gpu", "input_tput_per_gpu")
_STAT_CHOICES = ("p50", "p90", "p99")
_LATENCY_CHOICES = ("e2el", "ttft", "tpot")
TABLE_KEYS = ("model", "workload")


class ChartAxes(Frozen):
    """The metrics of one of the page's charts."""

    x: str
    y: str


class Choice(Frozen):
    """Something to choose, in both languages."""

    key: str
    en: str
    zh: str


class AxisChoices(Frozen):
    """What can be put on the charts' axes: y of both, the statistic of x, x of the second; only what some row has."""

    y: tuple[Choice, ...]
    stat: tuple[Choice, ...]
    latency: tuple[Choice, ...]


class Meta(Frozen):
    """What a page must know before it draws: choices, metrics, and where the rows come from."""

    prony_version: str
    title: str
    store: str
    rows: int
    measured: int
    made_at: str
    models: tuple[ModelChoice, ...]
    charts: tuple[ChartAxes, ...]
    choices: AxisChoices
    metrics: tuple[Metric, ...]
    unreadable: tuple[str, ...] = ()


class UnknownRowError(ConfigError):
    """A row key that the store does not hold."""


def meta(rows: Sequence[Row], title: str, store: str, made_at: str, unreadable: Sequence[Finding] = ()) -> bytes:
    """Answer /api/meta. unreadable: what of the store cannot be read."""
    answer = Meta(
        prony_version=__version__,
        title=title,
        store=store,
        rows=len(rows),
        measured=sum(measured_here(row) for row in rows),
        made_at=made_at,
        models=catalogue(rows).models,
        charts=tuple(ChartAxes(x=x, y=y) for x, y in STANDARD),
        choices=_axis_choices(rows),
        metrics=METRICS,
        unreadable=tuple(finding.message for finding in unreadable),
    )
    return answer.model_dump_json().encode()


def charts(rows: Sequence[Row], query: Mapping[str, str], now: datetime | None) -> bytes:
    """Answer /api/charts. Raises ConfigError for an unknown key, metric, statistic, model or workload."""
    chosen = _chosen(rows, query, CHART_KEYS)
    answer = chart(
        chosen,
        query.get("x") or STANDARD[0][0],
        query.get("y") or STANDARD[0][1],
        query.get("x_stat", ""),
        query.get("y_stat", ""),
        now,
    )
    return answer.model_dump_json().encode()


def rows_table(rows: Sequence[Row], query: Mapping[str, str], now: datetime | None) -> bytes:
    """Answer /api/table. Raises ConfigError for an unknown key, model or workload."""
    return table(_chosen(rows, query, TABLE_KEYS), now).model_dump_json().encode()


def table_csv(rows: Sequence[Row], query: Mapping[str, str], now: datetime | None) -> bytes:
    """Answer /api/table.csv: the table with the unit in each header, seconds as seconds, empty where not measured."""
    return to_csv(table(_chosen(rows, query, TABLE_KEYS), now)).encode()


def row_detail(rows: Sequence[Row], key: str, now: datetime | None, versions: Sequence[StoredVersion] = ()) -> bytes:
    """Answer /api/rows/{key}; a field that is absent has its default value. Raises UnknownRowError."""
    for row in rows:
        if row.key == key:
            return detail(row, now, versions).model_dump_json(exclude_defaults=True).encode()
    raise UnknownRowError(
        f"no row has the key '{key}'",
        allowed="a key that /api/table lists",
        fix="reload the page: the store may have changed",
    )


def address(path: str, query: Mapping[str, str]) -> str:
    """Return the one spelling of an API address: sorted keys, no empty values, escaped as encodeURIComponent does."""
    pairs = sorted((key, value) for key, value in query.items() if value)
    text = urlencode(pairs, quote_via=quote, safe="!'()*")
    return f"{path}?{text}" if text else path


def to_csv(content: Table) -> str:
    """Write a table as CSV. Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    headers = [f"{column.key} ({column.unit})" if column.unit else column.key for column in content.columns]
    writer.writerow([*headers, "unsupported", "valid", "verdicts", "key"])
    for row in content.rows:
        verdicts = "; ".join(f"{badge.rule or badge.kind}: {badge.message}" for badge in row.badges)
        cells = [cell(one) if isinstance(one, str) else one for one in row.cells]
        writer.writerow([*cells, " ".join(row.unsupported), "yes" if row.valid else "no", cell(verdicts), row.key])
    return out.getvalue()


def _axis_choices(rows: Sequence[Row]) -> AxisChoices:
    known = {(one.metric, one.stat) for row in rows for one in row.measurements}
    metrics, stats = {metric for metric, _ in known}, {stat for metric, stat in known if metric == STANDARD[0][0]}

    def named(keys: tuple[str, ...]) -> tuple[Choice, ...]:
        return tuple(Choice(key=key, en=metric(key).en, zh=metric(key).zh) for key in keys if key in metrics)

    return AxisChoices(
        y=named(_Y_CHOICES),
        stat=tuple(Choice(key=key, en=STATS[key][0], zh=STATS[key][1]) for key in _STAT_CHOICES if key in stats),
        latency=named(_LATENCY_CHOICES),
    )


def _chosen(rows: Sequence[Row], query: Mapping[str, str], allowed: tuple[str, ...]) -> tuple[Row, ...]:
    for key in query:
        if key not in allowed:
            raise ConfigError(f"'{key}' is not a query key here", allowed=", ".join(allowed))
    model, workload = query.get("model", ""), query.get("workload", "")
    if rows and not select(rows, model, workload):
        pairs = [f"{one.model} with {load.id}" for one in catalogue(rows).models for load in one.workloads]
        raise ConfigError(f"no row has model '{model}' and workload '{workload}'", allowed="; ".join(pairs))
    return select(rows, model, workload)
