"""Which points run first, and the reference's choice beside them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from prony.plan.canary import canaries, gpu_seconds
from prony.spec.compat.canary import reference_canary
from prony.spec.compat.convert import points_of_row
from prony.spec.point import AgenticCoding, FixedSeqLen, Point, RolePool, Topology
from tests.recipe.points import point

SPLIT = Topology(pools=(RolePool(role="prefill", tp=4), RolePool(role="decode", tp=8)))


def on_h200(**changes: Any) -> Point:
    return point(**{"runner": "h200", **changes})


def test_every_image_sku_and_kind_of_topology_has_its_cheapest_point() -> None:
    points = [
        on_h200(concurrency=8),
        on_h200(concurrency=4),
        on_h200(concurrency=4, precision="fp4"),
        on_h200(image="img:2", concurrency=64),
        on_h200(runner="cluster:b200-dgxc", concurrency=16),
        on_h200(multinode=True, topology=SPLIT, concurrency=1),
        on_h200(multinode=True, concurrency=2),
    ]
    found = canaries(points)
    assert [one.point for one in found] == [points[1], *points[3:]]
    assert [one.stands_for for one in found] == [3, 1, 1, 1, 1]
    assert [one.group.topology for one in found] == ["single-node"] * 3 + ["disaggregated", "aggregated"]


def test_cost_counts_devices_requests_and_tokens_or_the_duration() -> None:
    load = FixedSeqLen(isl=8192, osl=1024)
    assert gpu_seconds(on_h200(workload=load, concurrency=4, topology=SPLIT)) == pytest.approx(12 * 40 * 9.216)
    assert gpu_seconds(on_h200(workload=AgenticCoding(duration_s=600), topology=SPLIT)) == 7200


def test_an_agentic_group_has_a_canary_and_an_eval_only_one_has_none() -> None:
    agentic = on_h200(workload=AgenticCoding(), concurrency=1)
    assert [one.point for one in canaries([agentic])] == [agentic]
    assert canaries([on_h200(eval_only=True, evaluate=True)]) == ()


def test_every_real_image_has_a_canary(shared: Path) -> None:
    rows = json.loads(gzip.decompress((shared / "golden/matrix/full_all.json.gz").read_bytes()))
    points = [made for row in rows for made in points_of_row(row)]
    found = canaries(points)
    assert {one.group.image for one in found} == {row["image"] for row in rows}
    assert sum(one.stands_for for one in found) == len(points)


def test_the_reference_takes_the_first_single_node_fixed_row_of_lowest_concurrency(shared: Path) -> None:
    rows = json.loads(gzip.decompress((shared / "golden/matrix/full_all.json.gz").read_bytes()))
    chosen = reference_canary(rows)
    candidates = [row for row in rows if "isl" in row and "prefill" not in row and not row["run-eval"]]
    assert chosen is not None and chosen["conc"] == min(row["conc"] for row in candidates)
    assert chosen is next(row for row in candidates if row["conc"] == chosen["conc"])
    assert reference_canary([row for row in rows if "prefill" in row or "isl" not in row]) is None
    assert reference_canary([{**chosen, "run-eval": True}, {**chosen, "isl": 2048}]) is None
