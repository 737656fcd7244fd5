"""One published row as its source writes it, brought from either dialect to one shape; nothing is judged here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prony.measure.result import MOST

_SHOWN = 100
# Field names of a dashboard row; a raw row's own names for the same things.
_OF_AGG = {
    "hw": "hardware",
    "infmax_model_prefix": "model",
    "model": "model_name",
    "spec_decoding": "spec_method",
    "tp": "prefill_tp",
    "ep": "prefill_ep",
    "pp": "prefill_pp",
    "dcp_size": "prefill_dcp_size",
    "pcp_size": "prefill_pcp_size",
    "dp_attention": "prefill_dp_attention",
}
_POOL = ("tp", "ep", "pp", "dcp_size", "pcp_size", "dp_attention", "num_workers", "hw")
FIELDS = frozenset(
    {
        "hardware", "framework", "model", "model_name", "precision", "spec_method", "disagg", "is_multinode",
        "num_prefill_gpu", "num_decode_gpu", "isl", "osl", "conc", "image", "metrics", "date", "run_url",
        "benchmark_type", "offload_mode",
        *(f"{role}_{name}" for role in ("prefill", "decode") for name in _POOL),
    }
)  # fmt: skip


class RejectedError(Exception):
    """A row that cannot be understood, and why."""


@dataclass(frozen=True)
class RawPool:
    """One role as written; workers 0 means that the source did not count them."""

    tp: int
    ep: int
    pp: int
    dcp: int
    pcp: int
    dp_attention: bool | None
    workers: int
    hardware: str | None
    gpus: int | None


@dataclass(frozen=True)
class RawRow:
    """One row as written. metrics: every number under the source's own name; extra: fields that no rule reads."""

    whole: Mapping[str, Any]
    hardware: str
    framework: str
    model: str
    model_name: str
    precision: str
    spec_method: str
    disagg: bool
    multinode: bool
    prefill: RawPool
    decode: RawPool
    isl: int | None
    osl: int | None
    concurrency: int
    image: str | None
    date: str
    run_url: str | None
    benchmark_type: str | None
    offload_mode: str | None
    metrics: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)


def is_dashboard(value: Any) -> bool:
    """A row of the dashboard's API: configuration columns beside a `metrics` object (evaluations have one too)."""
    metrics = value.get("metrics") if isinstance(value, dict) else None
    return isinstance(metrics, dict) and "hardware" in value and "tput_per_gpu" in metrics


def is_agg(value: Any) -> bool:
    """A raw result row: configuration and metrics side by side."""
    return isinstance(value, dict) and "hw" in value and "tput_per_gpu" in value


def read_raw(value: Mapping[str, Any]) -> RawRow:
    """Bring a row of either dialect to one shape. Raises RejectedError."""
    plain = dict(value) if is_dashboard(value) else _from_agg(value)
    workers = _int(plain, "decode_num_workers", 0) or 0
    return RawRow(
        whole=value,
        hardware=_text(plain, "hardware").lower(),
        framework=_text(plain, "framework"),
        model=_text(plain, "model").lower(),
        model_name=_optional(plain, "model_name") or _text(plain, "model"),
        precision=_text(plain, "precision").lower(),
        spec_method=(_optional(plain, "spec_method") or "none").lower(),
        disagg=bool(_bool(plain, "disagg", workers > 0)),
        multinode=bool(_bool(plain, "is_multinode", False)),
        prefill=_pool(plain, "prefill"),
        decode=_pool(plain, "decode"),
        isl=_int(plain, "isl", None),
        osl=_int(plain, "osl", None),
        concurrency=_required(plain, "conc"),
        image=(_optional(plain, "image") or "").replace("#", "/") or None,
        date=_optional(plain, "date") or "",
        run_url=_optional(plain, "run_url"),
        benchmark_type=_optional(plain, "benchmark_type"),
        offload_mode=_optional(plain, "offload_mode"),
        metrics=plain["metrics"],
        extra={name: found for name, found in plain.items() if name not in FIELDS and found is not None},
    )


def _from_agg(value: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    for name, found in value.items():
        known = _OF_AGG.get(name, name)
        number = isinstance(found, int | float) and not isinstance(found, bool)
        (plain if known in FIELDS or not number else metrics)[known] = found
    return {**plain, "metrics": metrics}


def _pool(plain: Mapping[str, Any], role: str) -> RawPool:
    return RawPool(
        tp=_int(plain, f"{role}_tp", 0) or 0,
        ep=_int(plain, f"{role}_ep", 0) or 0,
        pp=_int(plain, f"{role}_pp", 1) or 1,
        dcp=_int(plain, f"{role}_dcp_size", 1) or 1,
        pcp=_int(plain, f"{role}_pcp_size", 1) or 1,
        dp_attention=_bool(plain, f"{role}_dp_attention", None),
        workers=_int(plain, f"{role}_num_workers", 0) or 0,
        hardware=_optional(plain, f"{role}_hw"),
        gpus=_int(plain, f"num_{role}_gpu", None),
    )


def _text(plain: Mapping[str, Any], name: str) -> str:
    found = _optional(plain, name)
    if found is None:
        raise RejectedError(f"'{name}' is missing")
    return found


def _optional(plain: Mapping[str, Any], name: str) -> str | None:
    found = plain.get(name)
    if found is None or found == "":
        return None
    if isinstance(found, str) and "\0" in found:
        raise RejectedError(f"'{name}' holds a NUL character: {_shown(found)}")
    if not isinstance(found, str):
        raise RejectedError(f"'{name}' is not a text: {_shown(found)}")
    return found


def _required(plain: Mapping[str, Any], name: str) -> int:
    found = _int(plain, name, None)
    if found is None:
        raise RejectedError(f"'{name}' is missing")
    return found


def _int(plain: Mapping[str, Any], name: str, default: int | None) -> int | None:
    """Read a whole number; big ones arrive as text."""
    found = plain.get(name)
    if found is None:
        return default
    try:
        number = int(found)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0 or isinstance(found, bool) or (isinstance(found, float) and found != number):
        raise RejectedError(f"'{name}' is not a whole number: {_shown(found)}")
    if number > MOST:
        raise RejectedError(f"'{name}' is more than {MOST:,}: {_shown(found)}")
    return number


def _shown(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _bool(plain: Mapping[str, Any], name: str, default: bool | None) -> bool | None:
    """Read a flag; raw rows write it as text."""
    found = plain.get(name)
    if found is None:
        return default
    said = {"true": True, "false": False}.get(str(found).lower())
    if said is None:
        raise RejectedError(f"'{name}' is neither true nor false: {_shown(found)}")
    return said
