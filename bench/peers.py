"""Other load clients, each in an environment of its own (`make bench-peers`), against the same truth server."""

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truth import Truth, Usage, measured, truth

FOLDER = Path(__file__).resolve().parents[1] / ".peers"
TOKENIZER = FOLDER / "tokenizer"
STREAMS, WAVES, ISL, OSL = 128, 3, 64, 128
PACED = {"ttft_us": 200_000, "itl_us": 10_000}


@dataclass(frozen=True)
class Outcome:
    """What a client reported and used. TTFT in ms; cpu_s of the whole process tree; start_s to its first request."""

    name: str
    mean_ms: float
    p99_ms: float
    used: Usage
    tokens: int
    start_s: float
    true_mean_ms: float
    true_p99_ms: float

    @property
    def cpu_s_per_million(self) -> float:
        """CPU-seconds per million tokens, start included."""
        return self.used.cpu_s / self.tokens * 1e6


@dataclass(frozen=True)
class Peer:
    """A peer: its command line for a server and a folder, and where its result has the TTFT mean and p99 in ms."""

    name: str
    argv: Callable[[str, Path], list[str]]
    read: Callable[[Path], tuple[float, float]]

    @property
    def program(self) -> Path:
        """Its executable."""
        return FOLDER / self.name / "bin" / self.name

    @property
    def installed(self) -> bool:
        """It can be run."""
        return self.program.exists()


def _vllm(url: str, out: Path) -> list[str]:
    return [
        "bench", "serve", "--backend", "openai", "--base-url", url, "--model", "m", "--tokenizer", str(TOKENIZER),
        "--dataset-name", "random", "--random-input-len", str(ISL), "--random-output-len", str(OSL),
        "--num-prompts", str(STREAMS * WAVES), "--max-concurrency", str(STREAMS), "--ignore-eos", "--save-result",
        "--result-dir", str(out), "--result-filename", "result.json", "--metric-percentiles", "99", "--disable-tqdm",
    ]  # fmt: skip


def _aiperf(url: str, out: Path) -> list[str]:
    return [
        "profile", "-m", "m", "--url", url, "--endpoint-type", "completions", "--streaming", "--concurrency",
        str(STREAMS), "--request-count", str(STREAMS * WAVES), "--isl", str(ISL), "--osl", str(OSL), "--tokenizer",
        str(TOKENIZER), "--artifact-dir", str(out), "--use-server-token-count", "--ui", "none",
    ]  # fmt: skip


def _guidellm(url: str, out: Path) -> list[str]:
    return [
        "run", "--backend", f"kind=openai_http,target={url},model=m", "--profile",
        f"kind=concurrent,streams={STREAMS}", "--constraint", f"kind=max_requests,count={STREAMS * WAVES}",
        "--tokenizer", f"kind=huggingface_auto,model={TOKENIZER}", "--data",
        f"kind=synthetic_text,prompt_tokens={ISL},output_tokens={OSL}", "--output",
        f"kind=json,path={out / 'result.json'}", "--disable-console",
    ]  # fmt: skip


def _read(file: Path) -> Any:
    return json.loads(file.read_text())


def _of_vllm(out: Path) -> tuple[float, float]:
    found = _read(out / "result.json")
    return found["mean_ttft_ms"], found["p99_ttft_ms"]


def _of_aiperf(out: Path) -> tuple[float, float]:
    found = _read(out / "profile_export_aiperf.json")["time_to_first_token"]
    return found["avg"], found["p99"]


def _of_guidellm(out: Path) -> tuple[float, float]:
    found = _read(out / "result.json")["benchmarks"][0]["metrics"]["time_to_first_token_ms"]["successful"]
    return found["mean"], found["percentiles"]["p99"]


PEERS = (
    Peer("vllm", _vllm, _of_vllm),
    Peer("aiperf", _aiperf, _of_aiperf),
    Peer("guidellm", _guidellm, _of_guidellm),
)


def compare(program: Path, prony: str) -> None:
    """Print ours and every installed peer, each against a fresh server, with ratios to ours."""
    print(f"peers: {STREAMS} streams, {WAVES} waves, {OSL} tokens; TTFT 200 ms, ITL 10 ms; errors in ms, CPU in s")
    ours = _outcome(program, "prony", lambda url, out: _prony(prony, url, out), _of_prony)
    found = [ours]
    for peer in PEERS:
        if not peer.installed:
            print(f"  {peer.name}: not installed (make bench-peers)")
            continue
        found.append(_outcome(program, peer.name, lambda url, out, peer=peer: [str(peer.program), *peer.argv(url, out)],
                              peer.read))  # fmt: skip
    head = ("client", "TTFT mean err", "TTFT p99 err", "CPU/M tok", "ratio", "start s", "ratio", "PSS MB", "ratio")
    print("  " + "".join(f"{cell:>14}" for cell in head))
    for one in found:
        cells = (
            one.name,
            f"{one.mean_ms - one.true_mean_ms:+.3f}",
            f"{one.p99_ms - one.true_p99_ms:+.3f}",
            f"{one.cpu_s_per_million:.1f}",
            f"{one.cpu_s_per_million / ours.cpu_s_per_million:.1f}x",
            f"{one.start_s:.2f}",
            f"{one.start_s / ours.start_s:.1f}x",
            f"{one.used.pss_bytes / 1e6:.0f}",
            f"{one.used.pss_bytes / ours.used.pss_bytes:.1f}x",
        )
        print("  " + "".join(f"{cell:>14}" for cell in cells))


def _prony(program: str, url: str, out: Path) -> list[str]:
    lengths = ["--isl", str(ISL), "--osl", str(OSL)]
    sizes = ["--concurrency", str(STREAMS), "--requests", str(STREAMS * WAVES)]
    return [program, "load", "--url", url, "--model", "m", *lengths, *sizes, "--json", str(out / "s.json"), "--quiet"]


def _of_prony(out: Path) -> tuple[float, float]:
    found = _read(out / "s.json")["ttft_s"]
    return found["mean"] * 1e3, found["p99"] * 1e3


def _outcome(
    program: Path, name: str, argv: Callable[[str, Path], list[str]], read: Callable[[Path], tuple[float, float]]
) -> Outcome:
    """Run one client twice: once for its numbers, once more for its memory, whose sampling disturbs."""
    with tempfile.TemporaryDirectory() as folder, truth(program, **PACED) as server:
        used = measured(argv(server.url, Path(folder)))
        if used.code:
            raise SystemExit(f"{name} ended with {used.code}:\n{used.output[-2000:]}")
        mean, p99 = read(Path(folder))
        stats = server.stats()
        first = _first_request_ns(server)
    with tempfile.TemporaryDirectory() as folder, truth(program, **PACED) as server:
        memory = measured(argv(server.url, Path(folder)), memory=True)
    used = Usage(used.code, used.cpu_s, used.wall_s, memory.pss_bytes, used.started_ns, used.output)
    ttft = stats["ttft_ms"]
    start = (first - used.started_ns) / 1e9
    return Outcome(name, mean, p99, used, int(stats["tokens"]), start, ttft["mean"], ttft["p99"])


def _first_request_ns(server: Truth) -> int:
    return min(int(json.loads(line)["t_req"]) for line in server.get("/dump").splitlines())


def make_tokenizer() -> None:
    """Train a small tokenizer that peers can load without a network, in an environment that has the libraries."""
    script = Path(__file__).with_name("peer_tokenizer.py")
    subprocess.run([FOLDER / "aiperf" / "bin" / "python", script, TOKENIZER], check=True)


if __name__ == "__main__":
    make_tokenizer()
