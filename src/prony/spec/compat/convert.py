"""Rows of the reference to points and back, without loss."""

from collections.abc import Sequence
from typing import Any, get_args

from pydantic import ValidationError

from prony.base.errors import ConfigError
from prony.base.model import first_fault
from prony.spec.compat.expand import (
    AGENTIC,
    MARGIN_TOKENS,
    JsonRow,
    lengths_name,
    multi_agentic_name,
    single_agentic_name,
)
from prony.spec.evals import EvalMode
from prony.spec.point import (
    AgenticCoding,
    FixedSeqLen,
    KvOffload,
    Point,
    RoleName,
    RolePool,
    Router,
    Setting,
    Topology,
    idle,
    split_roles,
)

DERIVED = ("recipe-fingerprint",)
"""What is computed from a row and not part of it."""


def points_of_row(row: JsonRow, key: str = "") -> tuple[Point, ...]:
    """Return the points of a row, one for each of its concurrencies; rows do not say their config key.

    Raises ConfigError that names the fields which a point cannot carry.
    """
    try:
        points = _points(row, key)
    except KeyError as error:
        raise ConfigError(f"row: {error.args[0]!r} is missing", fix="give a row of the reference's generator") from None
    except ValidationError as error:
        raise ConfigError(f"row: {first_fault(error)}", fix="give a row of the reference's generator") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"row: {error}", fix="give a row of the reference's generator") from None
    again = row_of_points(points, _mode(row))
    given = _plain(row)
    lost = sorted(name for name in given.keys() | again.keys() if given.get(name) != again.get(name))
    if lost:
        shown = ", ".join(f"{name} {given.get(name)!r} (expected {again.get(name)!r})" for name in lost)
        raise ConfigError(f"row: {shown}", fix="give a row as the generator prints it")
    return points


def row_of_points(points: Sequence[Point], evals: EvalMode = "default") -> JsonRow:
    """Return the row of points that differ in nothing but concurrency and eval mark.

    evals: the marking that the row is from; it decides between equal ways to say the same. Raises ConfigError.
    """
    if not points:
        raise ConfigError("no points to make a row of", fix="give at least one")
    first = points[0]
    if len(points) > 1 and not first.multinode:
        raise ConfigError(f"{first.label}: a single-node row holds one concurrency", fix="make a row of each point")
    if len({_series(point) for point in points}) > 1:
        raise ConfigError(f"{first.label}: points of one row differ in more than concurrency", fix="make a row of each")
    concurrencies = [point.concurrency for point in points]
    row: JsonRow = {
        "image": first.image, "model": first.model, "model-prefix": first.model_prefix, "precision": first.precision,
        "framework": first.framework, "runner": first.runner, "spec-decoding": first.spec_decoding,
        **(_worker_pair(first) if first.multinode else _spread(first.topology)),
        "conc": concurrencies if first.multinode else first.concurrency,
    }  # fmt: skip
    row |= _scenario(first, row)
    if first.router:
        row["router"] = {"name": first.router.name, "version": first.router.version}
    if first.kv_transfer:
        row["kv-p2p-transfer"] = first.kv_transfer
    return row | _eval_marks(points, evals)


def _points(row: JsonRow, key: str) -> tuple[Point, ...]:
    multinode = "prefill" in row
    concurrencies = row["conc"] if multinode else [row["conc"]]
    evaluated = _evaluated(row, concurrencies)
    topology, idle_decode = _topology(row)
    offload, router = row.get("kv-offload-backend") or {}, row.get("router")
    agentic = row.get("scenario-type") == AGENTIC
    first = Point(
        config_key=key, image=row["image"], model=row["model"], model_prefix=row["model-prefix"],
        precision=row["precision"], framework=row["framework"], runner=row["runner"], multinode=multinode,
        disagg=row.get("disagg", False), topology=topology, idle_decode=idle_decode,
        workload=AgenticCoding(duration_s=row["duration"]) if agentic else FixedSeqLen(isl=row["isl"], osl=row["osl"]),
        concurrency=concurrencies[0], spec_decoding=row["spec-decoding"],
        router=Router(name=router["name"], version=router["version"]) if router else None,
        kv_transfer=row.get("kv-p2p-transfer"),
        kv_offload=KvOffload(mode=row.get("kv-offloading", "none"), backend=offload.get("name"),
                             backend_version=offload.get("version")),
        cpu_dram_gb=row.get("total-cpu-dram-gb", 0), eval_only=row.get("eval-only", False),
    )  # fmt: skip
    return tuple(
        first.model_copy(update={"concurrency": value, "evaluate": value in evaluated}) for value in concurrencies
    )


def _evaluated(row: JsonRow, concurrencies: Sequence[int]) -> list[int]:
    if not row.get("run-eval"):
        return []
    return [row["eval-conc"]] if "eval-conc" in row else list(concurrencies)


def _mode(row: JsonRow) -> EvalMode:
    if row.get("eval-all-concs"):
        return "all"
    return "default" if "run-eval" in row else "none"


def _plain(row: JsonRow) -> JsonRow:
    """Leave out what is derived, and what is written though it says nothing, as the reference does in its buckets."""
    silent = ("eval-only", "eval-all-concs")
    kept = {name: value for name, value in row.items() if name not in DERIVED and (value or name not in silent)}
    for role in ("prefill", "decode"):
        if role in kept:
            kept[role] = {name: value for name, value in kept[role].items() if value != [] and value is not None}
    return kept


def _series(point: Point) -> Point:
    return point.model_copy(update={"concurrency": 0, "evaluate": False})


def _topology(row: JsonRow) -> tuple[Topology, RolePool | None]:
    if "prefill" not in row:
        return Topology(pools=(_pool("agg", row),)), None
    prefill, decode = (_pool(role, row[role]) for role in get_args(RoleName) if role != "agg")
    if not prefill.replicas:
        raise ValueError("no prefill workers")
    return split_roles(prefill, decode)


def _pool(role: RoleName, worker: dict[str, Any]) -> RolePool:
    return RolePool(
        role=role, replicas=worker.get("num-worker", 1), tp=worker["tp"], pp=worker["pp"], dcp=worker["dcp-size"],
        pcp=worker["pcp-size"], ep=worker["ep"], dp_attention=worker["dp-attn"], hardware=worker.get("hardware"),
        settings=tuple(_setting(text) for text in worker.get("additional-settings") or ()),
    )  # fmt: skip


def _setting(text: str) -> Setting:
    name, _, value = text.partition("=")
    return Setting(name=name, value=value)


def _spread(topology: Topology) -> JsonRow:
    pool = topology.pools[0]
    sizes = {"tp": pool.tp, "pp": pool.pp, "dcp-size": pool.dcp, "pcp-size": pool.pcp}
    return {**sizes, "ep": pool.ep or 1, "dp-attn": bool(pool.dp_attention)}


def _worker_pair(point: Point) -> JsonRow:
    pools = point.topology.pools
    decode = pools[1] if len(pools) > 1 else point.idle_decode or idle(pools[0])
    return {"prefill": _worker(pools[0]), "decode": _worker(decode)}


def _worker(pool: RolePool) -> JsonRow:
    worker = {"num-worker": pool.replicas, **_spread(Topology(pools=(pool,)))}
    if pool.hardware is not None:
        worker["hardware"] = pool.hardware
    if pool.settings:
        worker["additional-settings"] = [f"{setting.name}={setting.value}" for setting in pool.settings]
    return worker


def _scenario(point: Point, row: JsonRow) -> JsonRow:
    """Return what depends on the scenario; `row` has the fields that names are made of."""
    workload = point.workload
    if isinstance(workload, FixedSeqLen):
        return {
            "isl": workload.isl, "osl": workload.osl, "max-model-len": workload.isl + workload.osl + MARGIN_TOKENS,
            "exp-name": f"{point.model_prefix}_{lengths_name(workload.isl, workload.osl)}", "disagg": point.disagg,
        }  # fmt: skip
    offload = point.kv_offload
    backend: JsonRow = {}
    if offload.backend is not None:
        version = {} if offload.backend_version is None else {"version": offload.backend_version}
        backend = {"kv-offload-backend": {"name": offload.backend, **version}}
    name = multi_agentic_name if point.multinode else single_agentic_name
    return {
        "kv-offloading": offload.mode, "total-cpu-dram-gb": point.cpu_dram_gb, "duration": workload.duration_s,
        "exp-name": name(row, {**row, **backend}, point.concurrency, offload.mode), "scenario-type": AGENTIC, **backend,
        **({"disagg": point.disagg} if point.multinode else {}),
    }  # fmt: skip


def _eval_marks(points: Sequence[Point], evals: EvalMode) -> JsonRow:
    first, evaluated = points[0], [point.concurrency for point in points if point.evaluate]
    fixed = isinstance(first.workload, FixedSeqLen)
    if evals == "none":
        return {"run-eval": False} if fixed else {}
    marks: JsonRow = {"run-eval": bool(evaluated)}
    if first.eval_only:
        marks["eval-only"] = True
    if evaluated and first.multinode:
        marks |= {"eval-all-concs": True} if fixed and evals == "all" else {"eval-conc": max(evaluated)}
    return marks
