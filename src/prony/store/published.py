"""Published InferenceX results into rows; what cannot be mapped is reported with its raw value, never just dropped."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import orjson
from pydantic import ValidationError

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Severity, Where
from prony.base.model import Frozen, digest, first_fault
from prony.facts.frameworks import FRAMEWORKS, framework_name
from prony.facts.skus import sku_of_runner
from prony.measure.result import Measurement, Row
from prony.measure.rowverdicts import judge_row
from prony.spec.point import SpecDecoding
from prony.store.devices import Devices, devices_of
from prony.store.rawrow import RawRow, RejectedError, is_agg, is_dashboard, read_raw

CLIENT = "InferenceX benchmark_serving"
SHAPES = (
    "a list of dashboard API rows (as /api/v1/benchmarks and /benchmarks/history give them),"
    " a raw result row (agg_*.json), or a list of them"
)
_STATS = {"mean": "mean", "std": "std", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p99.9": "p999"}
# What the reference publishes as ITL is the gap between stream events, up to 287 times TPOT where one carries many.
_REQUEST_METRICS = {"ttft": "ttft", "tpot": "tpot", "itl": "event_gap", "e2el": "e2el", "intvty": "interactivity"}
_SYSTEM_METRICS = {
    "tput_per_gpu": "tput_per_gpu",
    "avg_power_w": "avg_power",
    "prefill_avg_power_w": "prefill_avg_power",
    "decode_avg_power_w": "decode_avg_power",
    "joules_per_total_token": "energy_per_token",
    "prefill_joules_per_input_token": "prefill_energy_per_input_token",
    "decode_joules_per_output_token": "decode_energy_per_output_token",
}
# Over all devices in aggregated rows; over those of the role in disaggregated ones.
_WHOLE_OR_ROLE = {
    "input_tput_per_gpu": ("input_tput_per_gpu", "input_tput_per_prefill_gpu"),
    "output_tput_per_gpu": ("output_tput_per_gpu", "output_tput_per_decode_gpu"),
}
# The same until power schema 2, which gives the whole system's energy under these names.
_WHOLE_OR_ROLE_ENERGY = {
    "joules_per_input_token": ("energy_per_input_token", "prefill_energy_per_input_token"),
    "joules_per_output_token": ("energy_per_output_token", "decode_energy_per_output_token"),
}
_POWER_SCHEMA = "power_metric_schema_version"
_TOLD = 80
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAME = re.compile(r"(?P<stat>[a-z0-9.]+)_(?P<metric>[a-z0-9]+)")


class Import(Frozen):
    """What a file held: rows, with verdicts on their own numbers, and findings about what could not be mapped."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]


def read_published(path: Path) -> Import:
    """Read published rows from a JSON file. Raises ConfigError when it is not one of the accepted shapes."""
    reader = _Reader(path.name)
    rows = [row for number, value in enumerate(_values(path), start=1) if (row := reader.row(number, value))]
    return Import(rows=tuple(rows), findings=tuple(reader.findings()))


def _values(path: Path) -> list[Any]:
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", fix="check the path and permissions") from None
    except orjson.JSONDecodeError as error:
        raise ConfigError(
            f"{path}:{error.lineno}: not JSON: {str(error).split(':')[0]}",
            allowed=SHAPES,
            fix="get the file again; a partial download ends early",
        ) from None
    values = document if isinstance(document, list) else [document]
    if not any(is_dashboard(value) or is_agg(value) for value in values):
        raise ConfigError(f"{path}: holds no published results", allowed=SHAPES)
    return values


class _Reader:
    """Maps the values of one file; remembers what it could not map, by kind and name."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._rejected: list[Finding] = []
        self._unmapped: dict[tuple[str, str], list[tuple[str, Any]]] = defaultdict(list)

    def row(self, number: int, value: Any) -> Row | None:
        """Map one value to a row with its verdicts, or note why it cannot be one."""
        try:
            if not (is_dashboard(value) or is_agg(value)):
                raise RejectedError("neither a dashboard row nor a raw result row")
            raw = read_raw(value)
            return self._mapped(raw, _spec_decoding(raw.spec_method))
        except (RejectedError, ValidationError) as error:
            reason = first_fault(error) if isinstance(error, ValidationError) else error
            text = orjson.dumps(value).decode()
            self._rejected.append(self._finding("rejected", "error", f"row {number} is not imported: {reason}", text))
            return None

    def _mapped(self, raw: RawRow, spec_decoding: SpecDecoding) -> Row:
        key = _identity(raw)
        devices = devices_of(raw)
        for name, found in raw.extra.items():
            self._unmapped["field", name].append((key, found))
        row = Row(
            key=key,
            origin="imported",
            source=raw.run_url or self._file,
            model=raw.model_name,
            model_prefix=raw.model,
            hardware=self._hardware(raw, key),
            runner=raw.hardware if re.search("[-_:]", raw.hardware) else None,
            framework=self._framework(raw, key),
            precision=raw.precision,
            spec_decoding=spec_decoding,
            disagg=raw.disagg,
            multinode=raw.multinode,
            topology=devices.topology,
            gpus_used=devices.total,
            workload="agentic-coding" if raw.benchmark_type == "agentic_traces" else "fixed-seq-len",
            isl=raw.isl,
            osl=raw.osl,
            concurrency=raw.concurrency,
            image=raw.image,
            measured_at=raw.date if _is_date(raw.date) else "",
            client=CLIENT,
            measurements=tuple(self._measurements(raw, devices, key)),
        )
        corrected = (devices.finding,) if devices.finding else ()
        own = (*_dates(raw), *_left_out(raw))
        return row.model_copy(update={"verdicts": (*corrected, *own, *judge_row(row))})

    def _hardware(self, raw: RawRow, key: str) -> str:
        try:
            return sku_of_runner(raw.hardware)
        except ConfigError:
            self._unmapped["hardware", raw.hardware].append((key, raw.hardware))
            return raw.hardware

    def _framework(self, raw: RawRow, key: str) -> str:
        name = framework_name(raw.framework)
        if name not in FRAMEWORKS:
            self._unmapped["framework", raw.framework].append((key, raw.framework))
        return name

    def _measurements(self, raw: RawRow, devices: Devices, key: str) -> Iterator[Measurement]:
        for name, found in raw.metrics.items():
            target = _target(name, devices, raw.metrics.get(_POWER_SCHEMA) == 2)
            number = _number(found)
            if name == _POWER_SCHEMA or found is None:
                continue
            if target is None:
                self._unmapped["metric", name].append((key, found))
            elif number is None:
                self._unmapped["value", name].append((key, found))
            else:
                yield Measurement(metric=target[0], stat=target[1], value=number)
                yield from _over_all_devices(target[0], number, devices)

    def findings(self) -> Iterator[Finding]:
        """Say what was not mapped: one finding per name, with every raw value."""
        yield from self._rejected
        for (kind, name), values in sorted(self._unmapped.items()):
            yield self._unmapped_finding(kind, name, values)

    def _unmapped_finding(self, kind: str, name: str, values: list[tuple[str, Any]]) -> Finding:
        many = f"{len(values)} row{'s' if len(values) > 1 else ''}"
        if name == "std_intvty":
            message = f"std_intvty of {many} is dropped: it is 1 / std of TPOT, which is no deviation of anything"
            return self._finding("meaningless-metric", "info", message, "")
        words = {
            "hardware": f"unknown SKU '{name}' in {many}: imported under that name",
            "framework": f"unknown framework '{name}' in {many}: imported under that name",
            "metric": f"metric '{name}' of {many} is not in the registry: its values are kept as a finding",
            "value": f"metric '{name}' of {many} has values that are no numbers: they are kept as a finding",
            "field": f"field '{name}' of {many} has no place in a row: its values are kept as a finding",
        }
        evidence = orjson.dumps({key[:16]: found for key, found in values}).decode()
        severity: Severity = "info" if kind == "field" else "warn"
        return self._finding(f"unmapped-{kind}", severity, words[kind], evidence)

    def _finding(self, rule: str, severity: Severity, message: str, evidence: str) -> Finding:
        return Finding(
            rule=f"import/{rule}",
            severity=severity,
            message=message,
            where=Where(file=self._file),
            evidence=evidence,
        )


def _identity(raw: RawRow) -> str:
    """Return the key of an imported row: the run it is from and all that was set, nothing that was measured.

    A raw row does not name its run; there the image and the date stand for it.
    """
    run = {"run": raw.run_url} if raw.run_url else {"image": raw.image, "date": raw.date}
    names = ("hardware", "model", "precision", "spec_method", "disagg", "multinode", "isl", "osl", "concurrency")
    settings = {name: getattr(raw, name) for name in (*names, "benchmark_type", "offload_mode")}
    roles = {"prefill": asdict(raw.prefill), "decode": asdict(raw.decode)}
    framework = framework_name(raw.framework)
    return digest({"schema": "prony.imported/1", **run, **settings, **roles, "framework": framework})


def _spec_decoding(name: str) -> SpecDecoding:
    for known in get_args(SpecDecoding):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise RejectedError(f"unknown speculative decoding '{name}'")


def _target(name: str, devices: Devices, whole_energy: bool) -> tuple[str, str] | None:
    """Return the registry key and statistic of a source's metric name, or None when there is none."""
    if name in _SYSTEM_METRICS:
        return _SYSTEM_METRICS[name], "value"
    role = int(devices.decode is not None)
    if name in _WHOLE_OR_ROLE:
        return _WHOLE_OR_ROLE[name][role], "value"
    if name in _WHOLE_OR_ROLE_ENERGY:
        return _WHOLE_OR_ROLE_ENERGY[name][0 if whole_energy else role], "value"
    parts = _NAME.fullmatch(name)
    if parts is None or parts["stat"] not in _STATS or parts["metric"] not in _REQUEST_METRICS:
        return None
    return None if name == "std_intvty" else (_REQUEST_METRICS[parts["metric"]], _STATS[parts["stat"]])


def _is_date(text: str) -> bool:
    """Whether text is an ISO 8601 date, with or without a time."""
    try:
        return bool(datetime.fromisoformat(text)) and _DAY.match(text) is not None
    except ValueError:
        return False


def _dates(raw: RawRow) -> Iterator[Finding]:
    if raw.date and not _is_date(raw.date):
        yield _on_row("date", "warn", f"its date is none: {raw.date[:_TOLD]!r}; when it was measured is not known")


def _left_out(raw: RawRow) -> Iterator[Finding]:
    """Say on the row itself which of its numbers are none; a negative one puts all others in doubt."""
    for name, found in raw.metrics.items():
        if found is None or name == _POWER_SCHEMA or _number(found) is not None:
            continue
        negative = isinstance(found, int | float) and not isinstance(found, bool)
        what = "cannot be" if negative else "is no number"
        yield _on_row(
            "value-left-out",
            "invalid" if negative else "warn",
            f"{name[:_TOLD]} {what} and is left out: {str(found)[:_TOLD]}",
        )


def _on_row(rule: str, severity: Severity, message: str) -> Finding:
    fix = "look at the run it came from, or get the file again"
    return Finding(rule=f"row/{rule}", severity=severity, message=message, fix=fix)


def _number(found: Any) -> float | None:
    """Read a measured number: finite and not negative; text that is one counts."""
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    try:
        number = float(found)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _over_all_devices(metric: str, value: float, devices: Devices) -> Iterator[Measurement]:
    """Bring a role's throughput per GPU to all GPUs, so that disaggregated rows compare with aggregated ones."""
    if devices.prefill is None or devices.decode is None:
        return
    if metric == "input_tput_per_prefill_gpu":
        share = value * devices.prefill / devices.total
        yield Measurement(metric="input_tput_per_gpu", stat="value", value=share)
    elif metric == "output_tput_per_decode_gpu":
        share = value * devices.decode / devices.total
        yield Measurement(metric="output_tput_per_gpu", stat="value", value=share)
