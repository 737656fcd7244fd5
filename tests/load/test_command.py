"""`prony load` as a person and as a program uses it."""

import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from prony.cli.main import main
from prony.measure.storage import read_log
from tests.load.conftest import Truth, free_port

SMALL = ("--isl", "16", "--osl", "8", "--concurrency", "4", "--requests", "12")
SPREAD = {"mean", "p50", "p90", "p95", "p99", "p999", "n", "ci95"}


def summary(truth: Truth, file: Path, *words: str) -> dict[str, Any]:
    argv = ["load", "--url", truth.url, "--model", "m", "--json", str(file), *SMALL, *words]
    assert main(argv) == 0
    return dict(json.loads(file.read_text()))


def test_the_summary_has_every_number_under_its_name(truth: Truth, tmp_path: Path) -> None:
    found = summary(truth, tmp_path / "s.json")
    assert found["requests"] == {"total": 12, "completed": 12, "failed": 0, "by_error": {}}
    for name in ("ttft_s", "itl_s", "tpot_s", "e2el_s", "interactivity"):
        assert set(found[name]) == SPREAD
    assert 0.002 <= found["ttft_s"]["mean"] < 5 and found["itl_s"]["n"] == 12 * 7
    assert set(found["throughput"]) == {"input", "output", "total", "request"}
    assert found["concurrency"]["asked"] == 4
    client = found["client"]
    assert client["clock"] == "kernel" and client["prompt_lengths"] == "token-ids" and client["bound"] in (True, False)
    assert all(client[name] > 0 for name in ("cpu_s", "peak_rss_bytes", "start_s"))
    assert isinstance(found["verdicts"], list) and found["origin_ns"] > 0


def test_failed_requests_are_counted_by_name_and_strict_makes_invalid_an_error(
    truth: Truth, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth.configure(fail=3)
    found = summary(truth, tmp_path / "s.json")
    assert found["requests"]["by_error"] == {"http_status": 4}
    assert "4 failed: 4 × http_status" in capsys.readouterr().out
    argv = ["load", "--url", truth.url, "--model", "m", *SMALL]
    assert main([*argv, "--strict"]) == 4
    truth.configure(fail=1)
    assert main(argv) == 3


def test_the_model_is_asked_for_where_it_is_not_named(truth: Truth, tmp_path: Path) -> None:
    assert main(["load", "--url", truth.url, *SMALL, "--out", str(tmp_path / "kept")]) == 0
    kept = json.loads((tmp_path / "kept" / "load.json").read_text())
    assert kept["model"] and kept["plan"]["requests"] == 12


def test_conversations_are_chat_and_a_file_is_kept_with_its_digest(truth: Truth, tmp_path: Path) -> None:
    url, kept = ("--url", truth.url, "--model", "m", "--concurrency", "2"), tmp_path / "kept"
    turns = ("--turns", "2", "--isl", "8", "--osl", "4", "--requests", "4")
    assert main(["load", *url, *turns, "--out", str(kept)]) == 0
    assert json.loads((kept / "load.json").read_text())["plan"]["endpoint"] == "chat"
    (tmp_path / "log.jsonl").write_text('{"prompt": [1, 2, 3], "max_tokens": 8}\n' * 4)
    dataset = f"request-log:{tmp_path / 'log.jsonl'}"
    assert main(["load", *url, "--dataset", dataset, "--requests", "4", "--out", str(kept)]) == 0
    workload = json.loads((kept / "load.json").read_text())["plan"]["workload"]
    assert workload["sha256"] == hashlib.sha256((tmp_path / "log.jsonl").read_bytes()).hexdigest()


def test_a_kept_load_is_reported_again_by_the_definitions_of_others(
    truth: Truth, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "kept"
    assert main(["load", "--url", truth.url, "--model", "m", *SMALL, "--out", str(out)]) == 0
    assert len(read_log(out / "events.npz").requests) == 12
    capsys.readouterr()
    for tool, name in (("vllm", "mean_ttft_ms"), ("aiperf", "inter_token_latency"), ("guidellm", "time_per_output")):
        assert main(["load", "--from", str(out), "--report-as", tool]) == 0
        assert name in capsys.readouterr().out
    raw = tmp_path / "raw.json"
    assert main(["load", "--from", str(out), "--inferencex-json", str(raw)]) == 0
    found = json.loads(raw.read_text())
    assert found["completed"] == 12 and found["max_concurrency"] == 4 and found["model_id"] == "m"
    assert found["mean_ttft_ms"] > 0 and "request_goodput:" in found


def test_json_on_standard_output_stands_alone(truth: Truth, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", "--url", truth.url, "--model", "m", *SMALL, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"]["total"] == 12


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name the server with --url"),
        (["--url", "http://h:1", "--from", "d"], "name the server with --url"),
        (["--url", "ftp://h", *SMALL], "not an address that can be loaded"),
        (["--url", "http://h:1", "--isl", "1", "--osl", "1"], "--concurrency is missing"),
        (["--url", "http://h:1", "--concurrency", "1"], "isl and osl are needed"),
        (["--url", "http://h:1", *SMALL, "--arrival", "gamma"], "--arrival gamma needs --rate or --stages"),
        (["--url", "http://h:1", *SMALL, "--rate", "1", "--stages", "1"], "both say how fast"),
        (["--url", "http://h:1", *SMALL, "--burstiness", "2"], "--burstiness is of --arrival gamma"),
        (["--url", "http://h:1", *SMALL, "--rate", "1", "--ramp-s", "1"], "--ramp-s is of --arrival closed"),
        (["--url", "http://h:1", *SMALL, "--stages", "1-x/3"], "'x' is not a number"),
        (["--url", "http://h:1", *SMALL, "--rate", "nan"], "rate"),
        (["--url", "http://h:1", *SMALL, "--arrival", "timed"], "needs the times of a workload 'request-log'"),
        (["--url", "http://h:1", *SMALL, "--input-lengths", "pareto:1"], "is not a distribution"),
        (["--url", "http://h:1", *SMALL, "--prefix", "4"], "--prefix '4'"),
        (["--url", "http://h:1", *SMALL, "--prefix", "1.5:4"], "groups"),
        (["--url", "http://h:1", *SMALL, "--dataset", "csv:x"], "--dataset 'csv:x'"),
        (["--url", "http://h:1", *SMALL, "--turns", "2", "--prefix", "1:4"], "do not go together"),
        (["--url", "http://h:1", *SMALL, "--think-s", "2"], "add --turns"),
        (["--url", "http://h:1", *SMALL, "--ratio", "2"], "range_ratio"),
        (["--from", "/nowhere"], "no load was kept here"),
    ],
    ids=lambda part: " ".join(part)[-40:] if isinstance(part, list) else "",
)
def test_what_does_not_go_together_is_one_message_before_anything_is_sent(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["load", *words]) in (2, 3)
    told = capsys.readouterr().err
    assert says in told and "Traceback" not in told


def test_no_server_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", "--url", f"http://127.0.0.1:{free_port()}", "--model", "m", *SMALL]) == 3
    assert "Connection refused" in capsys.readouterr().err


def started(truth: Truth, *words: str, **options: Any) -> "subprocess.Popen[bytes]":
    argv = [sys.executable, "-m", "prony", "load", "--url", truth.url, "--model", "m", *words]
    return subprocess.Popen(argv, **options)


def wait_for_completed(truth: Truth, count: int) -> None:
    deadline = time.monotonic() + 30
    while truth.stats()["completed"] < count and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_keeps_what_was_measured(truth: Truth, tmp_path: Path, workers: str) -> None:
    truth.configure(ttft_us=20_000, itl_us=5_000)
    file = tmp_path / "s.json"
    words = ("--isl", "16", "--osl", "8", "--concurrency", "4", "--requests", "4000", "--workers", workers)
    process = started(truth, *words, "--json", str(file), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_completed(truth, 8)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and b"Traceback" not in out + err
    found = json.loads(file.read_text())
    assert found["requests"]["completed"] >= 8 and found["requests"]["by_error"]["cancelled"] > 0
    assert found["ttft_s"]["mean"] > 0.02


def test_a_terminal_sees_one_line_of_progress_that_is_wiped_at_the_end(truth: Truth) -> None:
    truth.configure(ttft_us=100_000, itl_us=20_000)
    ours, theirs = pty.openpty()
    process = started(
        truth, "--isl", "16", "--osl", "16", "--concurrency", "2", "--requests", "6",
        stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    assert "/6 requests" in text and "in flight" in text and "TTFT p50" in text and "about" in text
    assert "\n" not in text.strip() and text.endswith("\x1b[2K")


@pytest.mark.parametrize("option", ["--json", "--inferencex-json"])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_sent(
    truth: Truth, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert main(["load", "--url", truth.url, "--model", "m", *SMALL, option, str(tmp_path / "no" / "x.json")]) == 3
    told = capsys.readouterr()
    assert "cannot be written" in told.err and "TTFT" not in told.out
