"""Expansion and selection of keys."""

import pytest

from prony.base.errors import ConfigError, PlanError
from prony.base.yamldoc import parse_yaml
from prony.spec.master import MasterConfig, read_master
from prony.spec.matrix import expand, select
from prony.spec.runners import Runners, read_runners
from tests.spec.test_master import GOOD


def runners(*labels: str) -> Runners:
    lines = "".join(f"  {label}: [node]\n" for label in labels)
    return read_runners(parse_yaml("labels:\n" + lines, "r.yaml"))


RUNNERS = runners("h200")


def master(text: str) -> MasterConfig:
    return MasterConfig(keys=read_master(parse_yaml(text, "m.yaml")))


def test_points_come_in_file_order_with_their_topology() -> None:
    points = expand(master(GOOD).keys, RUNNERS).points
    assert [point.concurrency for point in points] == [4, 8, 16, 32, 64, 100, 1, 2, 4]
    assert [point.topology.gpus for point in points] == [4] * 6 + [8] * 3
    assert points[-1].topology.label == "TP8 EP8"


def test_an_unknown_runner_is_refused_with_the_labels() -> None:
    with pytest.raises(ConfigError) as caught:
        expand(master(GOOD).keys, runners("h100", "b200"))
    assert "m.yaml:1 k1: runner 'h200' is not a label of r.yaml" in str(caught.value)
    assert "h100, b200" in str(caught.value)


def test_a_pattern_that_names_nothing_suggests_near_names() -> None:
    config = master(GOOD + GOOD.replace("k1", "qwen-fp8"))
    assert [item.key for item in select(config, ["qwen*", "k1"])] == ["qwen-fp8", "k1"]
    with pytest.raises(ConfigError) as caught:
        select(config, ["qwen-fp4"])
    assert "allowed here: qwen-fp8" in str(caught.value)


def test_nothing_to_run_is_an_error_not_an_empty_sweep() -> None:
    empty = GOOD.split("      search-space:")[0] + "      search-space: []\n"
    with pytest.raises(PlanError, match="nothing to run: k1: no points"):
        expand(master(empty).keys, RUNNERS)


def test_more_devices_than_a_node_has_are_refused_before_anything_starts() -> None:
    node = parse_yaml(
        "labels: {h200: [n]}\nhardware: {h200: {available-cpu-dram-mib: 1, gpus-per-node: 4}}\n", "r.yaml"
    )
    with pytest.raises(ConfigError) as caught:
        expand(master(GOOD).keys, read_runners(node))
    assert "m.yaml:1 k1: TP8 EP8 needs 8 devices, a node of runner 'h200' has 4 (r.yaml:1)" in str(caught.value)
