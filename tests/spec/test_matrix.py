"""Expansion and selection of keys."""

import pytest

from prony.base.errors import ConfigError, PlanError
from prony.base.yamldoc import parse_yaml
from prony.spec.append import appended
from prony.spec.compat.convert import points_of_row
from prony.spec.compat.generate import FullSweep, full_sweep, make_catalogue
from prony.spec.evals import EvalMode
from prony.spec.master import MasterConfig, read_master
from prony.spec.matrix import Matrix, Wanted, expand, select
from prony.spec.point import Point
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


AGENTIC = """\
k1:
  image: i:1
  model: org/m
  model-prefix: m
  precision: fp8
  framework: vllm
  runner: cluster:h200-x
  multinode: true
  scenarios:
    agentic-coding:
    - dram-utilization: 0.8
      search-space:
      - worker: { num-worker: 2, tp: 16, ep: 32, dp-attn: true, additional-settings: [A=b=c] }
        num-nodes: 4
        conc-list: [1, 16, 16]
        kv-offloading: dram
        kv-offload-backend: { name: lib }
"""
NODES = read_runners(
    parse_yaml(
        "labels: {'cluster:h200-x': [h200-x_0, h200-x_1]}\n"
        "hardware: {'cluster:h200-x': {available-cpu-dram-mib: 1000000, gpus-per-node: 8}}\n",
        "r.yaml",
    )
)


def test_an_aggregated_entry_is_one_pool_with_replicas_and_nodes() -> None:
    matrix = expand(master(AGENTIC).keys, NODES)
    (pool,) = matrix.points[0].topology.pools
    assert (pool.role, pool.replicas, pool.nodes, pool.gpus) == ("agg", 2, 4, 32)
    assert (pool.settings[0].name, pool.settings[0].value) == ("A", "b=c")
    assert [point.concurrency for point in matrix.points] == [1, 16]
    assert matrix.notes == ("k1 conc=16 (2x TP16 EP32 DPA) stands 2 times in m.yaml:1; kept once",)
    assert matrix.points[0].cpu_dram_gb == 1000000 * 2**20 * 8 // 10**10


def test_an_aggregated_entry_gives_the_rows_of_its_older_form() -> None:
    older = AGENTIC.replace("- worker:", "- prefill:").replace(
        "num-nodes: 4", "decode: { num-worker: 0, tp: 16, ep: 32, dp-attn: true }"
    )
    rows = [full_sweep(make_catalogue([parse_yaml(text, "m.yaml")], NODES), FullSweep()) for text in (AGENTIC, older)]
    assert rows[0] == rows[1] and len(rows[0]) == 3
    ours = expand(master(older).keys, NODES).points
    assert ours[0].topology.pools[0].role == "agg"
    assert list(dict.fromkeys(p for row in rows[0] for p in points_of_row(row, "k1"))) == list(ours)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("        num-nodes: 4\n", "", "needs either 'prefill' and 'decode', or 'worker' and 'num-nodes'"),
        ("multinode: true", "multinode: true\n  disagg: true\n  kv-p2p-transfer: nixl", "is not disaggregated"),
        ("num-nodes: 4", "num-nodes: 3", "needs 32 devices, 3 nodes of runner 'cluster:h200-x' have 24"),
        ("tp: 16", "tp: 12", "12 devices are no multiple of the 8 of a node"),
        ("num-worker: 2", "num-worker: 0", "no prefill workers"),
    ],
)
def test_a_faulty_aggregated_entry_is_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand(master(AGENTIC.replace(old, new)).keys, NODES)
    assert words in str(caught.value) and "m.yaml:" in str(caught.value)


def test_filters_drop_and_change_nothing() -> None:
    keys = master(GOOD + AGENTIC.replace("k1:", "k2:")).keys
    both = Runners(labels=(*RUNNERS.labels, *NODES.labels))
    bounded = expand(keys, both, Wanted(min_conc=3, max_conc=16))
    assert [point.concurrency for point in bounded.points] == [4, 8, 16, 4, 16]
    assert {p.config_key for p in expand(keys, both, Wanted(scenarios=("agentic-coding",))).points} == {"k2"}
    fleet = expand(keys, both, Wanted(runners=("cluster:*",)))
    assert {point.runner for point in fleet.points} == {"cluster:h200-x"}
    assert fleet.left_out == ("k1: no such runner or node",)
    nodes = expand(keys, both, Wanted(nodes=("h200-x_*",)))
    assert [(p.concurrency, p.runner) for p in nodes.points][:2] == [(1, "h200-x_0"), (1, "h200-x_1")]
    with pytest.raises(ConfigError, match=r"'b200\*' matches no node of"):
        expand(keys, both, Wanted(nodes=("b200*",)))
    with pytest.raises(ConfigError, match="'nope' matches no runner of"):
        expand(keys, both, Wanted(runners=("nope",)))


def long_prompts(evals: EvalMode) -> Matrix:
    text = GOOD.replace("isl: 128", "isl: 8192").replace("osl: 32", "osl: 1024")
    return expand(master(text + AGENTIC.replace("k1:", "k2:")).keys, Runners(labels=(*RUNNERS.labels, *NODES.labels)),
                  Wanted(evals=evals))  # fmt: skip


def test_evals_run_at_the_highest_and_the_middle_concurrency_of_long_prompts() -> None:
    def marked(evals: EvalMode) -> list[tuple[str, int]]:
        return [(point.config_key, point.concurrency) for point in long_prompts(evals).points if point.evaluate]

    assert marked("default") == [("k1", 64), ("k1", 100)]  # of 16, 32, 64, 100; MTP stays below 16
    assert marked("only") == [("k1", 64), ("k1", 100), ("k2", 16)]
    assert len(marked("all")) == 9 + 2 and marked("none") == []
    assert all(point.eval_only for point in long_prompts("only").points)
    assert not any(point.eval_only for point in long_prompts("default").points)


def test_only_what_is_new_between_two_matrices_is_appended() -> None:
    def points(text: str) -> tuple[Point, ...]:
        return expand(master(text).keys, RUNNERS).points

    base, more = points(GOOD), GOOD.replace("[1, 2, 4]", "[1, 2, 3, 4, 8]")
    assert [point.concurrency for point in appended(base, points(more))] == [3, 8]
    for text, words in (
        (GOOD, "this one adds none"),
        (more.replace("[1, 2,", "[2,"), "k1 mtp conc=1 (TP8 EP8) is gone"),
        (more.replace("image: i:1", "image: i:2"), "is gone"),
        (more + more.replace("k1:", "k2:").replace("i:1", "i:2"), "allowed here: i:1"),
        (more + more.replace("k1:", "k2:").replace("fp8", "fp4"), "a series that base has"),
    ):
        with pytest.raises(ConfigError) as caught:
            appended(base, points(text))
        assert words in str(caught.value)


def test_a_listing_shows_keys_of_unlisted_runners_and_says_so() -> None:
    matrix = expand(master(GOOD).keys, runners("h100"), unlisted="note")
    assert len(matrix.points) == 9
    assert any("runner 'h200' is not a label of r.yaml" in note for note in matrix.notes)


def test_a_suggested_runner_has_the_same_hardware() -> None:
    labels = runners("cluster:mi300x-tw", "cluster:mi325x-amds", "mi355x", "cluster:mi325x-amd")
    assert labels.near("cluster:mi325x-tw") == ["cluster:mi325x-amd", "cluster:mi325x-amds"]
    with pytest.raises(ConfigError) as caught:
        labels.label("h200", "m.yaml:1 k")
    assert "allowed here: cluster:mi300x-tw, " in str(caught.value)
