import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from prony.base.errors import MeasurementError
from prony.measure.eventlog import EventLog
from prony.measure.inferencex import AggFacts, MultiNode, Pool, Router, SingleNode, agg_row, raw_result
from prony.spec.load import LoadPlan
from tests.measure.logs import Made, closed_loop, make_log

PLAN = LoadPlan(isl=100, osl=11, concurrency=4, requests=40)
POWER = ("power_",)


def golden(shared: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shared / "golden/results/process_result.json").read_text())
    return found


def facts(env: dict[str, str]) -> AggFacts:
    router = Router(**json.loads(env["ROUTER_METADATA"])) if "ROUTER_METADATA" in env else None
    return AggFacts(
        hw=env["RUNNER_TYPE"],
        image=env["IMAGE"],
        model_prefix=env["MODEL_PREFIX"],
        framework=env["FRAMEWORK"],
        precision=env["PRECISION"],
        spec_decoding=env["SPEC_DECODING"],
        isl=int(env["ISL"]),
        osl=int(env["OSL"]),
        disagg=env["DISAGG"] == "true",
        deployment=_nodes(env) if env.get("IS_MULTINODE") == "true" else _node(env),
        router=router,
        kv_p2p_transfer=env.get("KV_P2P_TRANSFER"),
    )


def _node(env: dict[str, str]) -> SingleNode:
    sizes = {key: int(env.get(f"{key.upper()}_SIZE", 1)) for key in ("pp", "dcp", "pcp")}
    return SingleNode(tp=int(env["TP"]), ep=int(env["EP_SIZE"]), dp_attention=env["DP_ATTENTION"] == "true", **sizes)


def _nodes(env: dict[str, str]) -> MultiNode:
    return MultiNode(prefill=_pool("PREFILL", env), decode=_pool("DECODE", env))


def _pool(role: str, env: dict[str, str]) -> Pool:
    return Pool(
        gpus=int(env[f"{role}_GPUS"]),
        workers=int(env[f"{role}_NUM_WORKERS"]),
        tp=int(env[f"{role}_TP"]),
        ep=int(env[f"{role}_EP"]),
        dp_attention=env[f"{role}_DP_ATTN"] == "true",
        hardware=env.get(f"{role}_HARDWARE"),
    )


def _without_power(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in row.items() if not key.startswith(POWER))


def test_every_row_of_the_reference_comes_out_as_the_reference_wrote_it_power_apart(shared: Path) -> None:
    found = golden(shared)
    cases = [case for case in found["cases"] if case["exit"] == 0]
    assert cases
    for case in cases:
        raw = json.dumps(found["bench_base"] | case["bench_overrides"]).encode()
        row = json.loads(agg_row(raw, facts(case["env"])))
        assert row == dict(_without_power(case["agg"])), case["name"]
        assert list(row) == [key for key, _ in _without_power(case["agg"])], case["name"]


def test_deployments_that_the_reference_refuses_are_refused(shared: Path) -> None:
    refused = [case for case in golden(shared)["cases"] if case["exit"] != 0]
    assert len(refused) >= 4
    for case in refused:
        with pytest.raises(ValidationError):
            facts(case["env"])


def test_a_raw_result_has_the_keys_of_the_reference_and_its_definitions(shared: Path) -> None:
    log = closed_loop(40, 4)
    found = json.loads(raw_result(log, PLAN, "org/model"))
    base = golden(shared)["bench_base"]
    assert set(found) == set(base)
    assert found["request_goodput:"] is None and found["request_rate"] == "inf" and found["model_id"] == "org/model"
    assert found["completed"] == 40 and found["total_output_tokens"] == 440 and found["max_concurrency"] == 4
    seconds = found["benchmark_end_time_unix"] - found["benchmark_start_time_unix"]
    assert seconds == pytest.approx(found["duration"])
    assert found["output_throughput"] == pytest.approx(440 / seconds)
    assert found["median_ttft_ms"] == pytest.approx(20, rel=0.2)


def test_a_raw_result_becomes_a_row(shared: Path) -> None:
    case = next(case for case in golden(shared)["cases"] if case["name"] == "single_pp2_pcp2")
    raw = raw_result(closed_loop(40, 4), PLAN, "org/model")
    row = json.loads(agg_row(raw, facts(case["env"])))
    assert set(row) == {key for key, _ in _without_power(case["agg"])}
    bench = json.loads(raw)
    assert row["tput_per_gpu"] == pytest.approx(bench["total_token_throughput"] / 8)
    assert row["p99_intvty"] == pytest.approx(1000 / bench["p99_tpot_ms"])


def test_equal_tpots_lose_no_row_and_give_no_deviation_of_interactivity() -> None:
    raw = raw_result(make_log([Made(sent=0, tokens_at=[10, 20, 30])] * 2, 2), PLAN)
    node = SingleNode(tp=1, ep=1, dp_attention=False)
    served = AggFacts(
        hw="h200", image="i", model_prefix="m", framework="vllm", precision="fp8", spec_decoding="none", isl=1, osl=1,
        disagg=False, deployment=node,
    )  # fmt: skip
    row = json.loads(agg_row(raw, served))
    assert row["std_tpot"] == 0 and "std_intvty" not in row and row["mean_intvty"] == pytest.approx(100)


def test_a_pool_that_does_both_has_all_gpus_in_its_throughputs() -> None:
    pool = Pool(gpus=8, workers=2, tp=4, ep=4, dp_attention=True)
    nodes = MultiNode(prefill=pool, decode=Pool(gpus=0, workers=0, tp=8, ep=8, dp_attention=False))
    served = AggFacts(
        hw="h200", image="i", model_prefix="m", framework="vllm", precision="fp8", spec_decoding="none", isl=1, osl=1,
        disagg=False, deployment=nodes,
    )  # fmt: skip
    raw = raw_result(closed_loop(40, 4), PLAN)
    row, bench = json.loads(agg_row(raw, served)), json.loads(raw)
    assert row["output_tput_per_gpu"] == pytest.approx(bench["output_throughput"] / 8)
    assert (row["decode_tp"], row["decode_ep"], row["decode_pp"], row["num_decode_gpu"]) == (0, 0, 1, 0)


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (make_log([]), "no request was completed"),
        (make_log([Made(sent=0, tokens_at=[9], output=4)], streamed=False), "not streamed"),
        (make_log([Made(sent=0, tokens_at=[5, 9], output=-1, planned_output=2)]), "did not count its tokens"),
    ],
)
def test_what_the_format_cannot_say_is_an_error_and_no_zero(log: EventLog, why: str) -> None:
    with pytest.raises(MeasurementError, match=why):
        raw_result(log, PLAN)


@pytest.mark.parametrize("raw", [b"{", b"[]", b"{}", b'{"max_concurrency": "x"}'])
def test_a_file_that_is_no_raw_result_is_refused(raw: bytes, shared: Path) -> None:
    with pytest.raises(MeasurementError, match="not a raw result"):
        agg_row(raw, facts(golden(shared)["cases"][0]["env"]))


def test_the_rate_of_an_open_loop_is_written_as_asked() -> None:
    made = [Made(sent=10 * i, tokens_at=[10 * i + 5, 10 * i + 9], due=10 * i) for i in range(11)]
    log = make_log(made, 8, arrival="open")
    fixed = PLAN.model_validate({**PLAN.model_dump(), "arrival": {"kind": "open", "stages": [{"rate": 7}]}})
    changing = {"kind": "open", "stages": [{"rate": 7, "to_rate": 9, "for_s": 5}, {"rate": 9}]}
    assert json.loads(raw_result(log, fixed))["request_rate"] == 7
    ramp = PLAN.model_validate({**PLAN.model_dump(), "arrival": changing})
    assert json.loads(raw_result(log, ramp))["request_rate"] == pytest.approx(100)
