"""The load client against a server that says when it really sent: accuracy, throughput, cost, and its peers.

    python bench/load.py [accuracy] [throughput] [cost] [peers] [many] [--runs 5] [--truth TRUTH.C]

Server on core 0, client on core 1, each client a whole process (start, decoding, metrics and writing included). Errors
are client minus truth, of statistics over the same requests. Peers are those that `make bench-peers` has installed.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from peers import PEERS, compare
from truth import SOURCE, Truth, Usage, build, measured, truth

from prony.measure.eventlog import EventLog, Ints, Kind
from prony.measure.storage import read_log

PRONY = str(Path(sys.executable).parent / "prony")
MEAN_MS, P99_MS, ITL_P99_MS = 0.1, 0.3, 0.05
EVENTS_PER_S, SERVER_BOUND = 150_000, 0.85
COST, START_S, PSS_MB = 1.2, 0.5, 120
TOKENS = (Kind.CONTENT, Kind.REASONING, Kind.TOOL)
TRAPS: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("empty role chunk at 20 ms", "chat", {"role_us": 20_000}),
    ("4 tokens per event", "completions", {"tpc": 4, "itl_us": 10_000}),
    ("reasoning first", "chat", {"reasoning": 64}),
    ("5 % failures", "completions", {"fail": 20}),
    ("jitter", "completions", {"jitter_us": 3_000}),
)
PACED = {"ttft_us": 200_000, "itl_us": 10_000}


def load(
    server: Truth, folder: Path, *, memory: bool = False, **options: object
) -> tuple[Usage, dict[str, Any], EventLog]:
    """Run `prony load`, and return what it used, its summary and its event log."""
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    out = folder / "load"
    command = [PRONY, "load", "--url", server.url, "--model", "m", "--quiet", "--out", str(out), *words]
    used = measured(command, memory=memory)
    if used.code:
        raise SystemExit(f"prony load ended with {used.code}: {used.output}")
    return used, json.loads((out / "summary.json").read_text()), read_log(out / "events.npz")


def errors_ms(log: EventLog, truths: dict[int, dict[str, Any]], origin_ns: int) -> tuple[float, float, float]:
    """Return mean TTFT, p99 TTFT and p99 ITL, client minus truth, over the requests that completed."""
    events = log.events
    token = np.isin(events.kind, TOKENS)
    starts = np.searchsorted(events.request, np.arange(len(log.requests) + 1))
    seen, true, ttfts, true_ttfts = [], [], [], []
    for index, one in sorted(truths.items()):
        span = slice(starts[index], starts[index + 1])
        at: Ints = events.at[span][token[span]]
        seen.append(at)
        true.append(np.asarray(one["t_events"]) - origin_ns)
        ttfts.append(at[0] - log.requests.sent[index])
        true_ttfts.append(one["t_first"] - one["t_req"])
    gaps, true_gaps = (np.concatenate([np.diff(ats) for ats in side]) for side in (seen, true))
    ttft, true_ttft = np.asarray(ttfts), np.asarray(true_ttfts)
    pairs = ((ttft.mean(), true_ttft.mean()), (p99(ttft), p99(true_ttft)), (p99(gaps), p99(true_gaps)))
    mean, tail, gap = (float(ours - truly) / 1e6 for ours, truly in pairs)
    return mean, tail, gap


def p99(values: Any) -> float:
    """Return the 99th percentile."""
    return float(np.percentile(values, 99))


def verdict(*held: bool) -> str:
    """Say whether all bounds hold."""
    return "ok" if all(held) else "MISSED"


def accuracy(program: Path, runs: int) -> None:
    """Print errors for several loads and traps."""
    print(f"accuracy, ms (bounds: TTFT mean {MEAN_MS}, TTFT p99 {P99_MS}, ITL p99 {ITL_P99_MS})")
    cases = [(f"{streams} streams", "completions", {}, streams) for streams in (32, 128, 256)]
    cases += [(name, endpoint, knobs, 128) for name, endpoint, knobs in TRAPS]
    for name, endpoint, knobs, streams in cases:
        for _ in range(runs if not knobs else 1):
            with tempfile.TemporaryDirectory() as folder, truth(program, **{**PACED, **knobs}) as server:
                _, summary, log = load(
                    server, Path(folder), isl=64, osl=256, concurrency=streams, requests=3 * streams, endpoint=endpoint
                )
                mean, tail, gap = errors_ms(log, server.requests(), summary["origin_ns"])
            held = abs(mean) < MEAN_MS, abs(tail) < P99_MS, abs(gap) < ITL_P99_MS
            client = summary["client"]
            print(
                f"  {name:<28} TTFT mean {mean:+.4f} p99 {tail:+.4f}  ITL p99 {gap:+.4f}  merged"
                f" {client['merged_reads']:>4}  loop lag p99 {client['loop_lag_p99_s'] * 1e3:.2f}  {verdict(*held)}"
            )


def throughput(program: Path, runs: int) -> None:
    """Print events per second at zero delay."""
    print(f"zero delay, 512 streams x 128 tokens, one core (bound {EVENTS_PER_S:,} events/s, or server-bound)")
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder, truth(program) as server:
            before = server.stats()["cpu_s"]
            _, summary, log = load(server, Path(folder), isl=64, osl=128, concurrency=512, requests=6144)
            busy = (server.stats()["cpu_s"] - before) / summary["duration_s"]
        rate = len(log.events) / summary["duration_s"]
        held = rate >= EVENTS_PER_S or busy > SERVER_BOUND
        print(f"  {rate:>10,.0f} events/s, server busy {busy:.0%}  {verdict(held)}")


def cost(program: Path, runs: int) -> None:
    """Print the client's CPU beside the server's, start-up and memory."""
    print(f"paced, 256 streams x 400 tokens, whole process (bounds: {COST} of the server's CPU, start {START_S} s)")
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder, truth(program, **PACED) as server:
            before = server.stats()["cpu_s"]
            used, _, _ = load(server, Path(folder), isl=64, osl=400, concurrency=256, requests=256)
            spent = server.stats()["cpu_s"] - before
            start = (min(one["t_req"] for one in server.requests().values()) - used.started_ns) / 1e9
        held = used.cpu_s <= COST * spent, start < START_S
        print(
            f"  client {used.cpu_s:.2f} s, server {spent:.2f} s, ratio {used.cpu_s / spent:.2f}; first request after"
            f" {start:.2f} s  {verdict(*held)}"
        )
    with tempfile.TemporaryDirectory() as folder, truth(program, **PACED) as server:
        used, _, _ = load(server, Path(folder), memory=True, isl=64, osl=400, concurrency=512, requests=512)
    megabytes = used.pss_bytes / 1e6
    print(f"  512 streams x 400 tokens: PSS {megabytes:.0f} MB (bound {PSS_MB})  {verdict(megabytes < PSS_MB)}")


def many(_: Path, __: int) -> None:
    """Print what 16,384 streams of the simulated server cost."""
    from manystreams import run

    run(PRONY)


PARTS = {
    "accuracy": accuracy,
    "throughput": throughput,
    "cost": cost,
    "peers": lambda program, _: compare(program, PRONY),
    "many": many,
}


def main() -> None:
    """Run the parts that are asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--truth", type=Path, default=SOURCE)
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    print(f"peers installed: {', '.join(peer.name for peer in PEERS if peer.installed) or 'none (make bench-peers)'}")
    with tempfile.TemporaryDirectory() as folder:
        program = build(options.truth, Path(folder))
        for part in options.parts or PARTS:
            PARTS[part](program, options.runs)


if __name__ == "__main__":
    main()
