"""`prony report` and `prony serve` as people type them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from prony.cli.main import main
from prony.store.store import open_store
from tests.view.rows import locals_with_repeats


@pytest.fixture
def small_store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        store.add(locals_with_repeats(), "test")
    return path


def test_report_writes_one_file_and_says_where(
    small_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    assert main(["report", "--store", str(small_store), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 12 rows; open it in a browser\n"
    assert out.read_text().startswith("<!doctype html>")


def test_report_of_no_store_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--store", str(tmp_path / "none.db")]) == 2
    assert "prony run CONFIG" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_report_into_a_missing_folder_is_the_operators_fault(
    small_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--store", str(small_store), "--out", str(tmp_path / "no" / "r.html")]) == 3
    assert "cannot be written" in capsys.readouterr().err


def test_serve_on_a_taken_port_offers_the_next_free_one(small_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--store", str(small_store), "--port", str(port)]) == 3
    told = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in told
    offered = int(told.rsplit("--port", 1)[1].split()[0])
    assert offered > port or offered == 0


def test_serve_on_an_address_of_another_machine_says_so(small_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--store", str(small_store), "--host", "192.0.2.1"]) == 3
    assert "check that --host is an address of this machine" in capsys.readouterr().err


def test_serve_stops_at_once_when_interrupted_and_frees_its_port(small_store: Path) -> None:
    command = [sys.executable, "-m", "prony", "serve", "--store", str(small_store), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split(" at ")[1].split()[0]
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=10)
    assert process.returncode == 130
    assert told == "prony: interrupted\n"
    port = int(address.rstrip("/").rsplit(":", 1)[1])
    socket.create_server(("127.0.0.1", port)).close()
