"""How far the load client's TTFT and ITL are from the truth, against a server that says when it really sent.

    python bench/load_accuracy.py [--truth TRUTH.C] [--streams 32 128] [--waves 2]

Server on core 0, client on core 1: TTFT 200 ms, ITL 10 ms, 256 tokens. Errors are client minus truth, of statistics
over the same requests; lag is client stamp minus the server's stamp just before its write, event by event.
"waves 2+" is the mean TTFT error without the first wave, whose requests leave within a few µs of each other and so
wait in the server's sockets.
"""

import argparse
import asyncio
import http.client
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from prony.load.request import Target
from prony.load.run import Recording, run_load
from prony.measure.eventlog import Kind
from prony.spec.load import LoadPlan

DEFAULT_TRUTH = Path(__file__).resolve().parents[2] / "shared" / "tools" / "truth" / "truth.c"
TARGET_TTFT_ERROR_MS = 0.1
SERVER_CORE, CLIENT_CORE = 0, 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, default=DEFAULT_TRUTH)
    parser.add_argument("--streams", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--waves", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "truth"
        subprocess.run(["cc", "-O2", "-o", program, options.truth, "-lm"], check=True)
        os.sched_setaffinity(0, {CLIENT_CORE})
        print_header()
        for streams in options.streams:
            print_row(streams, *measure(program, streams, options.waves))
    print(f"goal: mean TTFT error below {TARGET_TTFT_ERROR_MS} ms")


def measure(program: Path, streams: int, waves: int) -> tuple[Recording, list[dict[str, Any]]]:
    port = free_port()
    knobs = ["--port", str(port), "--ttft-us", "200000", "--itl-us", "10000"]
    server = subprocess.Popen(["taskset", "-c", str(SERVER_CORE), program, *knobs], stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        plan = LoadPlan(isl=64, osl=256, concurrency=streams, requests=waves * streams)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            recording = runner.run(run_load(Target(url=f"http://127.0.0.1:{port}", model="m"), plan, lambda _: None))
        truths = [json.loads(line) for line in get(port, "/dump").splitlines()]
    finally:
        server.kill()
        server.wait()
    return recording, sorted(truths, key=lambda truth: int(truth["rid"].rpartition("-")[2]))


def print_header() -> None:
    names = (
        "streams",
        "TTFT mean",
        "TTFT p99",
        "waves 2+",
        "ITL mean",
        "ITL p99",
        "lag p50",
        "lag p99",
        "lag max",
        "CPU/M tok",
    )
    print("client minus truth in ms; lag in µs; CPU in s")
    print(" ".join(f"{name:>10}" for name in (*names, "clock", "loop p99", "send p99", "merged")))


def print_row(streams: int, recording: Recording, truths: Sequence[dict[str, Any]]) -> None:
    log = recording.log
    assert log is not None and len(log.requests) == len(truths)
    assert not log.requests.fault.any(), log.messages
    is_token = log.events.kind == Kind.CONTENT
    seen = [log.events.at[is_token & (log.events.request == i)] for i in range(len(truths))]
    true = [np.asarray(truth["t_events"]) - recording.origin_ns for truth in truths]
    ttft = np.array([at[0] for at in seen]) - log.requests.sent
    true_ttft = np.array([truth["t_first"] - truth["t_req"] for truth in truths])
    itl, true_itl = (np.concatenate([np.diff(at) for at in ats]) for ats in (seen, true))
    lag = np.concatenate([a - b for a, b in zip(seen, true, strict=True)])
    ms = [
        *(float(f(ttft) - f(true_ttft)) / 1e6 for f in (np.mean, p99)),
        float(np.mean((ttft - true_ttft)[streams:])) / 1e6,
        *(float(f(itl) - f(true_itl)) / 1e6 for f in (np.mean, p99)),
    ]
    us = [float(x) / 1e3 for x in (np.median(lag), p99(lag), lag.max())]
    facts = log.client
    cells = [str(streams), *(f"{x:+.4f}" for x in ms), *(f"{x:.1f}" for x in us)]
    cells += [f"{facts.cpu_s / is_token.sum() * 1e6:.1f}", facts.clock]
    cells += [f"{x * 1e3:.2f} ms" for x in (facts.loop_lag_p99_s, facts.send_lag_p99_s)]
    print(" ".join(f"{cell:>10}" for cell in (*cells, str(facts.merged_reads))))


def p99(values: Any) -> float:
    return float(np.percentile(values, 99))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(500):
        try:
            get(port, "/health")
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit("the truth server did not start")


def get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


if __name__ == "__main__":
    main()
