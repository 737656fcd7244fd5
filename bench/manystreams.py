"""16,384 streams of one token a second, against the simulated server in several processes."""

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from truth import measured

STREAMS, TOKENS, WORKERS = 16_384, 64, 4


def run(prony: str) -> None:
    """Print how many requests failed and what the client needed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    argv = [
        sys.executable, "-m", "prony.sim.server", "--port", str(port), "--model", "sim", "--ttft-ms", "5000",
        "--itl-ms", "1000", "--workers", str(WORKERS),
    ]  # fmt: skip
    server = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/health")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "s.json"
            lengths = ["--isl", "64", "--osl", str(TOKENS), "--tokenizer", "ids"]
            sizes = ["--concurrency", str(STREAMS), "--requests", str(STREAMS)]
            command = [prony, "load", "--url", f"http://127.0.0.1:{port}", "--model", "sim", *lengths, *sizes]
            used = measured([*command, "--quiet", "--json", str(file)], memory=True, pinned=False)
            if used.code:
                raise SystemExit(used.output)
            found = json.loads(file.read_text())
    finally:
        server.terminate()
        server.wait()
    requests, client = found["requests"], found["client"]
    held = "ok" if not requests["failed"] else "MISSED"
    print(f"{STREAMS:,} streams x {TOKENS} tokens at 1 token/s, simulated server in {WORKERS} processes")
    print(
        f"  failed {requests['failed']} {requests['by_error'] or ''}  {held}; PSS {used.pss_bytes / 1e6:.0f} MB, RSS"
        f" {client['peak_rss_bytes'] / 1e6:.0f} MB; client CPU {used.cpu_s:.1f} s; TTFT p50"
        f" {found['ttft_s']['p50']:.2f} s; in flight {found['concurrency']['achieved_mean'] or 0:,.0f}"
    )


def _wait(url: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("the simulated server did not start")
