"""The same hand-made stream under the definitions of each tool: where they differ, and by how much."""

import numpy as np
import pytest

from prony.base.errors import ConfigError
from prony.measure.eventlog import EventLog, Kind
from prony.measure.reportas import TOOLS, report
from prony.spec.load import LoadPlan
from tests.measure.logs import Made, make_log

PLAN = LoadPlan(isl=64, osl=12, concurrency=1, requests=1, endpoint="chat")


def value(log: EventLog, tool: str, name: str, plan: LoadPlan = PLAN) -> float:
    found = report(log, plan, tool).value(name)
    assert found is not None, (tool, name)
    return found


def plain(tokens: int = 12, **more: object) -> Made:
    """First token at 200 ms, then one each 10 ms."""
    return Made(sent=0, tokens_at=[200 + 10 * step for step in range(tokens)], input=64, **more)  # type: ignore[arg-type]


def trailing(made: Made, at: float) -> Made:
    made.extra = (*made.extra, (at, Kind.USAGE), (at + 1, Kind.DONE))
    made.end = at + 1
    return made


def test_all_tools_agree_on_a_plain_stream_but_guidellms_tpot() -> None:
    log = make_log([plain()])
    for tool in ("vllm", "sglang", "inferencex"):
        assert value(log, tool, "mean_ttft_ms") == pytest.approx(200)
        assert value(log, tool, "mean_tpot_ms") == pytest.approx(10)
        assert value(log, tool, "mean_itl_ms") == pytest.approx(10)
        assert value(log, tool, "output_throughput") == pytest.approx(12 / 0.31)
    assert value(log, "aiperf", "time_to_first_token.avg") == pytest.approx(200)
    assert value(log, "aiperf", "inter_token_latency.avg") == pytest.approx(10)
    assert value(log, "aiperf", "output_token_throughput_per_user.avg") == pytest.approx(100)
    assert value(log, "guidellm", "inter_token_latency_ms.mean") == pytest.approx(10)
    assert value(log, "guidellm", "time_per_output_token_ms.mean") == pytest.approx(310 / 12)
    assert value(log, "guidellm", "request_latency.mean") == pytest.approx(0.31)
    assert value(log, "prony", "ttft.mean") == pytest.approx(0.2)


def test_guidellms_tpot_of_256_tokens_is_as_it_was_measured() -> None:
    """Measured 10.94 ms where the truth is 10.00: (200 + 255 * 10) / 256 = 10.74, and its late stamps."""
    log = make_log([plain(256)])
    assert value(log, "guidellm", "time_per_output_token_ms.mean") == pytest.approx((200 + 2550) / 256)


def test_an_empty_role_chunk_is_a_first_token_to_vllm_and_inferencex_alone() -> None:
    """Measured with the role at 20 ms: TTFT 27 where the truth is 200, the gap booked into ITL and TPOT."""
    made = plain(32)
    made.extra = ((20, Kind.ROLE),)
    log = make_log([made])
    for tool in ("vllm", "inferencex"):
        assert value(log, tool, "mean_ttft_ms") == pytest.approx(20)
        assert value(log, tool, "mean_itl_ms") == pytest.approx((180 + 31 * 10) / 32)
        assert value(log, tool, "mean_tpot_ms") == pytest.approx((180 + 31 * 10) / 31)
        assert value(log, tool, "p99_itl_ms") > 120
    assert value(log, "sglang", "mean_ttft_ms") == pytest.approx(200)
    assert value(log, "aiperf", "time_to_first_token.avg") == pytest.approx(200)
    assert value(log, "guidellm", "time_to_first_token_ms.mean") == pytest.approx(200)
    assert value(log, "prony", "ttft.mean") == pytest.approx(0.2)
    assert value(log, "prony", "tpot.mean") == pytest.approx(0.01)


def test_four_tokens_per_event_are_one_gap_to_those_that_count_chunks() -> None:
    made = Made(sent=0, tokens_at=[200 + 40 * step for step in range(16)], output=64, per_event=[4] * 16, input=64)
    log = make_log([made])
    assert value(log, "inferencex", "mean_itl_ms") == pytest.approx(40)
    assert value(log, "inferencex", "mean_tpot_ms") == pytest.approx(600 / 63)
    assert value(log, "aiperf", "inter_chunk_latency.avg") == pytest.approx(40)
    assert value(log, "aiperf", "inter_token_latency.avg") == pytest.approx(600 / 60)
    assert value(log, "guidellm", "inter_token_latency_ms.mean") == pytest.approx(600 / 63)
    assert value(log, "prony", "itl.mean") == pytest.approx(0.01)
    untold = Made(sent=0, tokens_at=made.tokens_at, output=64, input=64)
    assert value(make_log([untold]), "aiperf", "inter_token_latency.avg") == pytest.approx(600 / 63)


def test_the_end_of_a_request_is_another_event_to_each_tool() -> None:
    log = make_log([trailing(plain(), 400)])
    completions = PLAN.model_copy(update={"endpoint": "completions"})
    assert value(log, "vllm", "mean_e2el_ms") == pytest.approx(310)
    assert value(log, "inferencex", "mean_e2el_ms") == pytest.approx(400)
    assert value(log, "inferencex", "mean_e2el_ms", completions) == pytest.approx(310)
    assert value(log, "sglang", "mean_e2e_latency_ms") == pytest.approx(401)
    assert value(log, "sglang", "mean_tpot_ms") == pytest.approx(201 / 11)
    assert value(log, "aiperf", "request_latency.avg") == pytest.approx(310)
    assert value(log, "guidellm", "request_latency.mean") == pytest.approx(0.401)


def test_a_per_request_itl_hides_the_gaps_whose_tail_others_show() -> None:
    made = Made(sent=0, tokens_at=[200, *[200 + 10 * step for step in range(1, 100)], 1400], output=101, input=64)
    log = make_log([made])
    assert value(log, "inferencex", "p99.9_itl_ms") > 150
    assert value(log, "aiperf", "inter_token_latency.p99") == pytest.approx(12)
    assert value(log, "guidellm", "inter_token_latency_ms.p99") == pytest.approx(12)


def test_guidellm_weighs_requests_by_their_tokens_and_takes_percentiles_that_occurred() -> None:
    short = Made(sent=0, tokens_at=[100, 200], input=64)
    long = Made(sent=0, tokens_at=[100 + 10 * step for step in range(10)], input=64)
    log = make_log([short, long], 2)
    assert value(log, "guidellm", "inter_token_latency_ms.mean") == pytest.approx((100 + 9 * 10) / 10)
    assert value(log, "guidellm", "inter_token_latency_ms.median") == pytest.approx(10)
    assert value(log, "aiperf", "inter_token_latency.avg") == pytest.approx(55)


def test_standard_deviations_of_benchmark_serving_are_over_n() -> None:
    log = make_log([Made(sent=0, tokens_at=[at, at + 10]) for at in (100, 200, 300)], 3)
    assert value(log, "vllm", "std_ttft_ms") == pytest.approx(np.std([100, 200, 300]))


def test_whole_answers_give_no_first_token_under_any_definition() -> None:
    log = make_log([Made(sent=0, tokens_at=[300], output=12)], streamed=False)
    for tool in TOOLS:
        assert not [line.name for line in report(log, PLAN, tool).lines if "ttft" in line.name or "first" in line.name]
    assert value(log, "aiperf", "request_latency.avg") == pytest.approx(300)


def test_uncounted_tokens_leave_out_what_needs_them_rather_than_make_it_zero() -> None:
    log = make_log([Made(sent=0, tokens_at=[100, 200], output=-1, planned_output=2)])
    for tool in TOOLS:
        names = {line.name for line in report(log, PLAN, tool).lines}
        assert names and not any("tpot" in name or "output_t" in name for name in names)


def test_every_line_says_how_it_is_defined_and_no_tool_fails_on_an_empty_load() -> None:
    for tool in TOOLS:
        found = report(make_log([plain()]), PLAN, tool)
        assert found.tool == tool and all(line.definition and line.unit for line in found.lines)
        assert all(line.name.startswith("requests_") for line in report(make_log([]), PLAN, tool).lines)


def test_an_unknown_tool_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError) as caught:
        report(make_log([plain()]), PLAN, "wrk")
    assert "guidellm" in str(caught.value.allowed)
