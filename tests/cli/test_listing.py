"""What a list of results tells, and how it is asked for."""

import json
from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.base.finding import Finding
from prony.cli import console
from prony.cli.outcome import print_points
from prony.cli.rowversions import changes
from prony.measure.result import Measurement, Row
from prony.store.store import open_store
from tests.cli.test_results import prony
from tests.store.rows import make_row, measured
from tests.store.test_published import AGG

LLAMA = {"model": "org/Llama-3.1-8B", "model_prefix": "llama8b", "hardware": "h200", "framework": "vllm"}
WARNED = (Finding(rule="row/doubt", severity="warn", message="doubtful"),)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        store.add([make_row("ab" * 32, config_key="smol-cpu", verdicts=WARNED)], "here")
        store.add([make_row("cd" * 32, concurrency=4, measurements=measured(200.0), **LLAMA)], "there")
        store.add([make_row("cd" * 32, concurrency=4, measurements=measured(100.0), **LLAMA)], "there")
    return path


def listed(place: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert prony("list", "--store", place, "--json", *words) == 0
    return [row["key"][:2] for row in json.loads(capsys.readouterr().out)]


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["--model", "smol"], ["ab"]),
        (["--model", "LLAMA8B"], ["cd"]),
        (["--model", "3.1-8b", "smollm2"], ["ab", "cd"]),
        (["--hardware", "H200"], ["cd"]),
        (["--framework", "llama.cpp"], ["ab"]),
        (["--framework", "VLLM", "--precision", "Q4_1"], ["cd"]),
    ],
)
def test_filters_take_names_as_people_and_tables_write_them(
    words: list[str], keys: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(place, capsys, *words) == keys


@pytest.mark.parametrize(
    ("words", "allowed", "fix"),
    [
        (["--model", "lama"], "", ""),
        (["--model", "smolm2"], "HuggingFaceTB/SmolLM2-135M-Instruct, org/Llama-3.1-8B", ""),
        (["--hardware", "h20"], "cpu, h200", "did you mean h200?"),
        (["--framework", "vlm"], "llamacpp, vllm", "did you mean vllm?"),
        (["--conc", "7"], "1, 4", "give one of those"),
    ],
)
def test_a_filter_that_no_result_has_lists_those_that_some_have(
    words: list[str], allowed: str, fix: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not allowed:  # a part that only one model has is no mistake
        assert listed(place, capsys, *words) == ["cd"]
        return
    with pytest.raises(ConfigError, match="no result has") as caught:
        prony("list", "--store", place, *words)
    assert caught.value.allowed == allowed and fix in caught.value.fix


def test_a_part_that_several_models_have_names_them_and_filters_that_exclude_each_other_say_so(place: Path) -> None:
    with pytest.raises(ConfigError, match="fits 2 models") as caught:
        prony("list", "--store", place, "--model", "-")
    assert "Llama" in caught.value.allowed
    with pytest.raises(ConfigError, match="none of 2 results has all of that together"):
        prony("list", "--store", place, "--model", "smol", "--hardware", "h200")


def test_the_list_for_programs_identifies_each_result_and_names_its_verdicts(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prony("list", "--store", place, "--json")
    one, two = json.loads(capsys.readouterr().out)
    assert (one["model"], one["isl"], one["osl"], one["config_key"], one["source"], one["hardware"]) == (
        "HuggingFaceTB/SmolLM2-135M-Instruct", 128, 32, "smol-cpu", "here", "cpu",
    )  # fmt: skip
    assert one["verdicts"] == [{"rule": "row/doubt", "severity": "warn"}] and two["verdicts"] == []
    assert (one["version"], two["version"]) == (1, 2)


def test_list_and_show_name_the_config_key(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prony("list", "--store", place)
    assert "smol-cpu" in capsys.readouterr().out
    prony("show", "ab", "--store", place)
    told = capsys.readouterr().out
    assert "smol-cpu" in told and "(1 device)" in told and "None" not in told


def test_earlier_versions_are_marked_in_the_list_and_shown_with_their_numbers(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prony("list", "--store", place)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip().endswith("v2") for line in lines if line.startswith(("abab", "cdcd"))] == [False, True]
    prony("show", "cd", "--store", place)
    told = capsys.readouterr().out.split("2 versions:")[1]
    assert "200" in told and "100" in told and "shown" in told and "2026-12-01T02:43:52Z" in told


def test_a_run_says_when_it_replaces_a_measurement_that_was_far_from_it() -> None:
    def rows(*values: float) -> list[Row]:
        return [make_row(str(at) * 64, measurements=measured(value)) for at, value in enumerate(values)]

    before = {row.key: row for row in rows(100.0, 100.0, 100.0)}
    (told,) = changes(before, rows(105.0, 130.0, 100.0, 50.0))
    assert "+30%" in told and "130 tok/s/GPU" in told and "2026-12-01T02:43:52Z" in told


def test_percentiles_of_too_few_requests_are_marked_and_the_mark_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weak = Measurement(metric="ttft", stat="p99", value=0.25, n=8, supported=False)
    firm = Measurement(metric="ttft", stat="p50", value=0.125, n=80)
    row = make_row(measurements=(*measured(10.0), weak, firm))
    print_points([row])
    told = capsys.readouterr().out
    assert "250 ms*" in told and "125 ms*" not in told and "* too few requests" in told
    print_points([make_row(measurements=(*measured(10.0), firm))])
    assert "*" not in capsys.readouterr().out
    with open_store(tmp_path / "s.db") as store:
        store.add([make_row(measurements=(weak, firm.model_copy(update={"supported": False})))], "here")
    prony("list", "--store", tmp_path / "s.db")
    told = capsys.readouterr().out
    assert "0.125*" in told and "* too few requests" in told


def test_who_reads_a_pipe_gets_numbers_without_spaces(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_points([make_row(measurements=measured(123_456.0))])
    console.say("12\u2009345 tokens")
    told = capsys.readouterr().out
    assert "123456" in told and "12345 tokens" in told and "\u2009" not in told
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert console.shown("12\u2009345") == "12\u2009345"


def test_an_import_counts_verdicts_and_says_where_its_findings_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, store = tmp_path / "rows.json", tmp_path / "s.db"
    path.write_text(json.dumps([AGG, {**AGG, "conc": 8, "mean_e2el": 0.01, "novel": 17}]))
    prony("import", path, "--store", store)
    told = capsys.readouterr().out
    assert "1 result invalid" in told and "row/littles-law 1" in told and "results findings --store" in told
    prony("import", path, "--store", store, "--json")
    (one,) = json.loads(capsys.readouterr().out)
    assert one["verdicts"]["rows_invalid"] == 1 and one["verdicts"]["rules"]["row/littles-law"] == 1
    assert prony("findings", "--store", store) == 0
    assert "'novel'" in capsys.readouterr().out
    prony("findings", "--store", store, "--json")
    assert any("17" in found["evidence"] for found in json.loads(capsys.readouterr().out))
