"""The real master configs expand to the rows that the reference prints."""

import gzip
import json
from pathlib import Path
from typing import Any

from prony.base.finding import Where
from prony.spec.master import load_master
from prony.spec.matrix import expand
from prony.spec.point import FixedSeqLen, Point
from prony.spec.runners import RunnerLabel, Runners, load_runners


def row(point: Point) -> dict[str, Any]:
    """A single-node fixed-length point in the reference's words (what a row says about what is served)."""
    pool = point.topology.pools[0]
    assert isinstance(point.workload, FixedSeqLen)
    return {
        "image": point.image, "model": point.model, "model-prefix": point.model_prefix, "precision": point.precision,
        "framework": point.framework, "runner": point.runner, "isl": point.workload.isl, "osl": point.workload.osl,
        "tp": pool.tp, "pp": pool.pp, "dcp-size": pool.dcp, "pcp-size": pool.pcp, "conc": point.concurrency,
        "ep": pool.ep or 1, "dp-attn": bool(pool.dp_attention), "spec-decoding": point.spec_decoding,
    }  # fmt: skip


def test_single_node_fixed_points_equal_the_reference_rows_in_order(shared: Path) -> None:
    configs = shared / "data/inferencex/configs"
    master = load_master([configs / "nvidia-master.yaml", configs / "amd-master.yaml"])
    declared = load_runners(configs / "runners.yaml")
    # Eight real keys name runners that no label list has; the reference does not check.
    where = Where(file="test")
    used = {
        item.entry.runner: RunnerLabel(name=item.entry.runner, nodes=("node",), where=where) for item in master.keys
    }
    points = expand(master.keys, Runners(labels=(*declared.labels, *used.values()))).points
    ours = [row(point) for point in points if not point.multinode and isinstance(point.workload, FixedSeqLen)]
    golden = json.loads(gzip.decompress((shared / "golden/matrix/full_all.json.gz").read_bytes()))
    theirs = [item for item in golden if "isl" in item and "prefill" not in item]
    names = list(ours[0])
    assert len(theirs) == 690
    assert ours == [{name: item[name] for name in names} for item in theirs]
