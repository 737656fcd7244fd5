import argparse
import csv
import io
import json
from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.cli import results
from prony.store.store import open_store
from tests.store.rows import make_row
from tests.store.test_ingest import job
from tests.store.test_published import AGG


def prony(*words: str | Path) -> int:
    parser = argparse.ArgumentParser(prog="prony")
    results.add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["results", *map(str, words)])
    code: int = arguments.run(arguments)
    return code


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        store.add([make_row("ab" * 32), make_row("cd" * 32, concurrency=4)], "here")
    return path


def test_list_shows_numbers_with_units_and_the_next_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prony("list", "--store", place) == 0
    out = capsys.readouterr().out
    assert "tok/s/GPU" in out and "123" in out and "abababab" in out and "2 results" in out
    assert "next: prony results show" in out


def test_list_as_json_keeps_full_numbers(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prony("list", "--store", place, "--conc", "4", "--json")
    (line,) = json.loads(capsys.readouterr().out)
    assert line["key"] == "cd" * 32 and line["tput_per_gpu"] == 123.4 and line["valid"] is True


def test_show_takes_the_start_of_a_key(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prony("show", "ab", "--store", place)
    assert "SmolLM2" in capsys.readouterr().out
    prony("show", "ab", "--store", place, "--json")
    assert json.loads(capsys.readouterr().out)[0]["key"] == "ab" * 32
    with pytest.raises(ConfigError, match="no result has a key"):
        prony("show", "9", "--store", place)


def test_export_names_a_unit_in_every_header_that_has_one(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prony("export", "--store", place)
    header, *lines = csv.reader(io.StringIO(capsys.readouterr().out))
    assert "tput_per_gpu [tok/s/GPU]" in header and "isl [tokens]" in header and len(lines) == 2
    assert dict(zip(header, lines[1], strict=True))["concurrency"] == "4"
    prony("export", "--store", place, "--json")
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_nothing_there_says_how_to_get_results(tmp_path: Path, place: Path) -> None:
    with pytest.raises(ConfigError, match="no results yet") as caught:
        prony("list", "--store", tmp_path / "none.db")
    assert caught.value.exit_code == 2 and "prony results import" in caught.value.fix
    with pytest.raises(ConfigError, match="no result has 'h100'") as caught:
        prony("list", "--store", place, "--hardware", "h100")
    assert caught.value.allowed == "cpu"


def test_import_tells_what_it_did_and_what_it_could_not_map(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted((shared / "data/published/raw_agg_rows").glob("*.json"))
    place = tmp_path / "store.db"
    assert prony("import", *files, "--store", place) == 0
    out = capsys.readouterr().out
    assert "1 new" in out and "5 new" in out and "unknown SKU 'tpuv7'" in out
    prony("import", *files, "--store", place, "--json")
    assert [one["unchanged"] for one in json.loads(capsys.readouterr().out)] == [1, 5]


def test_a_bad_file_among_several_imports_none(shared: Path, tmp_path: Path) -> None:
    good = next((shared / "data/published/raw_agg_rows").glob("*.json"))
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    with pytest.raises(ConfigError, match=r"bad\.json"):
        prony("import", good, bad, "--store", tmp_path / "store.db")
    assert not (tmp_path / "store.db").exists()


def test_a_sweep_directory_is_imported_from_its_job_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(tmp_path / "sweep", 1, "succeeded")
    assert prony("import", tmp_path / "sweep", "--store", tmp_path / "store.db") == 0
    assert "1 new" in capsys.readouterr().out


def test_a_damaged_folder_among_others_gives_exit_code_3_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job(tmp_path / "sweep", 1, "succeeded")
    (job(tmp_path / "sweep", 2, "succeeded") / "result.json").write_text("{")
    for words in ("1 new", "1 known already"):
        assert prony("import", tmp_path / "sweep", "--store", tmp_path / "store.db") == 3
        told = capsys.readouterr()
        assert words in told.out and "ingest/damaged" in told.out and "1 could not be imported" in told.err


def test_a_rejected_row_among_others_gives_exit_code_3(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([AGG, {**AGG, "conc": 10**30}]))
    assert prony("import", path, "--store", tmp_path / "store.db") == 3


def test_foreign_text_steers_neither_terminal_nor_spreadsheet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = {"model": "=cmd|'/c calc'!A1", "infmax_model_prefix": "\x1b]0;x\x07[/red]", "image": "@SUM(1)\x1b[2J"}
    path, place = tmp_path / "rows.json", tmp_path / "store.db"
    path.write_text(json.dumps([{**AGG, **evil}]))
    prony("import", path, "--store", place)
    key = open_store(place).rows()[0].key
    capsys.readouterr()
    for words in (("list",), ("show", key), ("export",)):
        assert prony(*words, "--store", place) == 0
        assert "\x1b" not in capsys.readouterr().out
    prony("export", "--store", place)
    header, line = csv.reader(io.StringIO(capsys.readouterr().out))
    cells = dict(zip(header, line, strict=True))
    assert cells["model"] == "'=cmd|'/c calc'!A1" and cells["image"].startswith("'@SUM")
    assert float(cells["tput_per_gpu [tok/s/GPU]"]) == 990.0


def test_an_import_of_nothing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    path.write_text('[{"hw": "h200", "tput_per_gpu": 1}]')
    with pytest.raises(ConfigError, match="nothing was imported"):
        prony("import", path, "--store", tmp_path / "store.db")
    assert "'framework' is missing" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["list", "show", "import", "export"])
def test_every_help_shows_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        prony(verb, "--help")
    assert "example: prony results" in " ".join(capsys.readouterr().out.split())
