import json
import time
from collections import Counter
from pathlib import Path

import orjson
import pytest

from prony.base.errors import ConfigError
from prony.measure.result import Row
from prony.measure.rowverdicts import littles_ratio
from prony.store.published import Import, read_published
from prony.store.store import open_store

AGG = {
    "hw": "h200-cw_1", "conc": 4, "model": "org/Model-1B", "infmax_model_prefix": "model1", "framework": "vllm",
    "precision": "mxfp4", "spec_decoding": "none", "disagg": False, "isl": 1000, "osl": 100, "is_multinode": False,
    "tp": 2, "ep": 1, "dp_attention": "false", "tput_per_gpu": 990.0, "output_tput_per_gpu": 90.0,
    "input_tput_per_gpu": 900.0, "mean_ttft": 0.2, "mean_tpot": 0.02, "mean_intvty": 50.0, "mean_e2el": 2.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def published(shared: Path) -> Path:
    return shared / "data" / "published"


@pytest.fixture(scope="module")
def benchmarks(published: Path) -> Import:
    return read_published(published / "app_fixtures" / "benchmarks.json")


def read(tmp_path: Path, value: object) -> Import:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(value))
    return read_published(path)


def flagged(rows: tuple[Row, ...], rule: str) -> list[Row]:
    return [row for row in rows if any(verdict.rule == rule for verdict in row.verdicts)]


def test_all_435_published_rows_come_in_within_two_seconds(published: Path, tmp_path: Path) -> None:
    started = time.process_time()
    found = read_published(published / "app_fixtures" / "benchmarks.json")
    with open_store(tmp_path / "store.db") as store:
        assert store.add(found.rows, "benchmarks.json", found.findings).added == 435
        assert time.process_time() - started < 2.0
        assert store.add(found.rows, "benchmarks.json", found.findings).unchanged == 435
        assert set(store.rows()) == set(found.rows)


def test_exactly_the_rows_with_a_known_fault_are_flagged(benchmarks: Import) -> None:
    rules = Counter((verdict.rule, verdict.severity) for row in benchmarks.rows for verdict in row.verdicts)
    assert rules == {("row/gpu-count-corrected", "warn"): 46 + 8, ("row/littles-law", "invalid"): 1}


def test_the_row_whose_server_stood_idle_breaks_littles_law(benchmarks: Import) -> None:
    (row,) = flagged(benchmarks.rows, "row/littles-law")
    assert (row.hardware, row.framework, row.precision, row.spec_decoding, row.concurrency) == (
        "mi355x", "atom", "fp8", "mtp", 512,
    )  # fmt: skip
    assert not row.valid and "k = 0.0214" in row.verdicts[0].message


def test_expert_parallel_ranks_are_not_counted_as_more_gpus(benchmarks: Import) -> None:
    wrong = [row for row in flagged(benchmarks.rows, "row/gpu-count-corrected") if not row.disagg]
    assert len(wrong) == 46
    assert all(row.gpus_used == row.topology.gpus == row.topology.pools[0].tp for row in wrong)
    evidence = json.loads(wrong[0].verdicts[0].evidence)
    assert evidence["num_prefill_gpu"] == wrong[0].gpus_used * (wrong[0].topology.pools[0].ep or 0)


def test_role_counts_that_hold_the_total_are_split_as_the_throughputs_say(benchmarks: Import) -> None:
    wrong = [row for row in flagged(benchmarks.rows, "row/gpu-count-corrected") if row.disagg]
    splits = sorted((row.topology.pools[0].gpus, row.topology.pools[1].gpus) for row in wrong)
    assert splits == [(4, 16), (4, 24), (4, 24), (4, 32), (4, 32), (24, 48), (32, 16), (48, 24)]
    assert {row.hardware for row in wrong} == {"gb200"}


def test_every_sound_row_keeps_littles_law_and_the_token_identity(benchmarks: Import) -> None:
    ratios = [found[0] for row in benchmarks.rows if row.valid and (found := littles_ratio(row))]
    assert len(ratios) == 434
    assert min(ratios) > 0.69 and max(ratios) < 0.92
    for row in benchmarks.rows:
        parts = row.value("input_tput_per_gpu"), row.value("output_tput_per_gpu")
        if parts[0] is not None and parts[1] is not None:
            assert sum(parts) == pytest.approx(row.value("tput_per_gpu"), rel=0.01)


def test_role_local_throughputs_keep_their_own_names(benchmarks: Import) -> None:
    row = next(row for row in benchmarks.rows if row.disagg and not row.verdicts)
    role = row.value("output_tput_per_decode_gpu")
    decode = row.topology.pools[1].gpus
    assert role and row.value("output_tput_per_gpu") == pytest.approx(role * decode / row.gpus_used)
    assert all(one.value("output_tput_per_decode_gpu") is None for one in benchmarks.rows if not one.disagg)


def test_energy_of_a_disaggregated_row_is_role_local(benchmarks: Import) -> None:
    (row,) = [row for row in benchmarks.rows if row.disagg and row.value("avg_power")]
    power, rate = row.value("decode_avg_power"), row.value("output_tput_per_decode_gpu")
    assert power and rate
    assert row.value("decode_energy_per_output_token") == pytest.approx(power / rate, rel=1e-3)
    assert row.value("energy_per_output_token") is None


def test_what_cannot_be_mapped_is_reported_with_its_raw_values(benchmarks: Import) -> None:
    found = {finding.message.split()[1]: finding for finding in benchmarks.findings}
    assert json.loads(found["'avg_util_pct'"].evidence).popitem()[1] == 97.753
    assert json.loads(found["'avg_mem_used_mb'"].evidence).popitem()[1] == 217939.496
    assert "hosts" in found["'workers'"].evidence
    dropped = [finding for finding in benchmarks.findings if finding.rule == "import/meaningless-metric"]
    assert len(dropped) == 1 and "435 rows" in dropped[0].message


def test_the_history_adds_only_what_is_new(published: Path, benchmarks: Import, tmp_path: Path) -> None:
    history = read_published(published / "app_fixtures" / "benchmarks-history.json")
    assert len(history.rows) == 1462
    assert {verdict.rule for row in history.rows for verdict in row.verdicts if verdict.severity == "invalid"} == {
        "row/littles-law"
    }
    with open_store(tmp_path / "store.db") as store:
        store.add(benchmarks.rows, "benchmarks")
        receipt = store.add(history.rows, "history")
        assert receipt.changed == 0 and receipt.added + receipt.unchanged == 1462 and receipt.unchanged > 200


def test_a_raw_result_row_comes_in(published: Path) -> None:
    found = read_published(published / "raw_agg_rows" / "agg_kimik2.5_8k1k_int4_vllm_mi355x_mtp_conc32.json")
    (row,) = found.rows
    assert (row.model, row.model_prefix, row.hardware) == ("moonshotai/Kimi-K2.5", "kimik2.5", "mi355x")
    assert row.gpus_used == 8 and row.valid and not row.verdicts and row.measured_at == ""
    assert row.value("ttft", "p999") == pytest.approx(15.44, rel=1e-3)
    assert row.value("interactivity", "std") is None


def test_unknown_hardware_is_imported_under_its_name_and_reported(published: Path) -> None:
    found = read_published(published / "raw_agg_rows" / "agg_tpuv7_qwen3.5_fp8_vllm_8k1k.json")
    assert [row.hardware for row in found.rows] == ["tpuv7"] * 5
    assert found.findings[0].rule == "import/unmapped-hardware" and "5 rows" in found.findings[0].message
    assert all("they agree for 4 devices instead of 8" in row.verdicts[0].message for row in found.rows)


def test_runner_labels_are_normalised_and_precisions_stay_apart(tmp_path: Path) -> None:
    (row,) = read(tmp_path, AGG).rows
    assert (row.hardware, row.runner, row.precision) == ("h200", "h200-cw_1", "mxfp4")
    assert row.verdicts == ()
    other = read(tmp_path, {**AGG, "precision": "nvfp4"}).rows[0]
    assert other.precision == "nvfp4" and other.key != row.key


def test_big_numbers_as_text_are_read(tmp_path: Path) -> None:
    (row,) = read(tmp_path, [{**AGG, "conc": "4", "isl": "1000", "mean_ttft": "0.2"}]).rows
    assert (row.concurrency, row.isl) == (4, 1000)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"conc": None}, "'conc' is missing"),
        ({"conc": 2.5}, "'conc' is not a whole number: 2.5"),
        ({"disagg": "perhaps"}, "'disagg' is neither true nor false"),
        ({"spec_decoding": "telepathy"}, "unknown speculative decoding 'telepathy'"),
        ({"framework": 7}, "'framework' is not a text: 7"),
    ],
)
def test_a_row_that_cannot_be_read_is_reported_whole_and_the_others_come_in(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    found = read(tmp_path, [AGG, {**AGG, **change}])
    assert len(found.rows) == 1
    (rejected,) = [finding for finding in found.findings if finding.rule == "import/rejected"]
    assert reason in rejected.message and "row 2" in rejected.message
    assert json.loads(rejected.evidence) == {**AGG, **change}


@pytest.mark.parametrize("value", ["n/a", -1.0, True, {"a": 1}])
def test_a_value_that_is_no_number_is_kept_as_finding_and_never_becomes_zero(tmp_path: Path, value: object) -> None:
    found = read(tmp_path, [{"metrics": {**_metrics(), "mean_ttft": value}, **_settings()}])
    assert found.rows[0].value("ttft", "mean") is None
    (finding,) = found.findings
    assert finding.rule == "import/unmapped-value" and list(json.loads(finding.evidence).values()) == [value]


def test_numbers_that_contradict_each_other_carry_the_verdict(tmp_path: Path) -> None:
    def rules(**change: object) -> set[str]:
        return {verdict.rule for verdict in read(tmp_path, {**AGG, **change}).rows[0].verdicts}

    assert rules(mean_intvty=60.0) == {"row/interactivity"}
    assert rules(p90_ttft=0.5, p99_ttft=0.4) == {"row/percentile-order"}
    assert rules(input_tput_per_gpu=450.0) == {"row/token-identity"}
    assert rules(mean_e2el=2000.0, mean_ttft=200.0, mean_tpot=20.0, mean_intvty=0.05) == {
        "row/littles-law",
        "row/slow-tokens",
    }
    assert rules(mean_ttft=200.0) == {"row/decode-time", "row/latency-parts"}
    milliseconds = read(
        tmp_path, {**AGG, "mean_e2el": 2000.0, "mean_ttft": 200.0, "mean_tpot": 20.0, "mean_intvty": 0.05}
    )
    assert any("look like milliseconds" in verdict.message for verdict in milliseconds.rows[0].verdicts)


def test_a_gpu_count_that_nothing_explains_is_told(tmp_path: Path) -> None:
    found = read(tmp_path, [{"metrics": _metrics(), **_settings(), "num_prefill_gpu": 6, "num_decode_gpu": 6}])
    assert {"row/gpu-count"} <= {verdict.rule for verdict in found.rows[0].verdicts}
    assert found.rows[0].gpus_used == 6


def test_unknown_frameworks_are_imported_under_their_name(tmp_path: Path) -> None:
    found = read(tmp_path, {**AGG, "framework": "warp9"})
    assert found.rows[0].framework == "warp9"
    assert found.findings[0].rule == "import/unmapped-framework"
    assert read(tmp_path, {**AGG, "framework": "sglang-disagg"}).rows[0].framework == "mori-sglang"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "holds no published results"),
        (b'{"some": "thing"}', "holds no published results"),
        (b"3", "holds no published results"),
    ],
)
def test_a_file_of_another_shape_names_the_accepted_ones(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        read_published(path)
    assert "dashboard API rows" in caught.value.allowed


def test_evaluations_are_not_taken_for_results(published: Path) -> None:
    with pytest.raises(ConfigError, match="holds no published results"):
        read_published(published / "app_fixtures" / "evaluations.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_published(published / "nowhere.json")


def test_a_files_place_does_not_change_its_rows(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for name in ("a", "b"):
        (tmp_path / name / "agg.json").write_bytes(orjson.dumps(AGG))
    assert read_published(tmp_path / "a" / "agg.json") == read_published(tmp_path / "b" / "agg.json")


def _settings() -> dict[str, object]:
    return {
        "hardware": "h200", "framework": "vllm", "model": "model1", "precision": "fp8", "spec_method": "none",
        "disagg": False, "is_multinode": False, "prefill_tp": 2, "prefill_ep": 1, "decode_tp": 2, "decode_ep": 1,
        "isl": 1000, "osl": 100, "conc": 4, "date": "2026-06-01", "run_url": "https://example.org/1",
    }  # fmt: skip


def _metrics() -> dict[str, float]:
    return {name: value for name, value in AGG.items() if isinstance(value, float)}
