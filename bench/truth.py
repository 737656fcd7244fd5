"""The truth server (a C program that says when it really sent), and a process measured while it loads it."""

import http.client
import json
import resource
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[2] / "shared" / "tools" / "truth" / "truth.c"
SERVER_CORE, CLIENT_CORE = 0, 1


def build(source: Path, folder: Path) -> Path:
    """Compile the truth server."""
    program = folder / "truth"
    subprocess.run(["cc", "-O2", "-o", program, source, "-lm"], check=True)
    return program


class Truth:
    """A running truth server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    def stats(self) -> dict[str, Any]:
        return dict(json.loads(self.get("/stats")))

    def requests(self) -> dict[int, dict[str, Any]]:
        """The true instants of every measured request that was served, by its index."""
        found = [json.loads(line) for line in self.get("/dump").splitlines()]
        marked = [(str(one["rid"]).rpartition("-")[2], one) for one in found]
        return {int(mark): one for mark, one in marked if mark.isdigit()}


@contextmanager
def truth(program: Path, **knobs: int) -> Iterator[Truth]:
    """Run a fresh truth server on its own core."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    words = [word for name, value in knobs.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    argv = ["taskset", "-c", str(SERVER_CORE), str(program), "--port", str(port), *words]
    server = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        found = Truth(port)
        for _ in range(500):
            try:
                found.get("/health")
                break
            except OSError:
                time.sleep(0.01)
        yield found
    finally:
        server.kill()
        server.wait()


@dataclass(frozen=True)
class Usage:
    """What a client process and all its children used. started_ns: CLOCK_MONOTONIC before it was started."""

    code: int
    cpu_s: float
    wall_s: float
    pss_bytes: int
    started_ns: int
    output: str


def measured(argv: Sequence[str], *, timeout_s: float = 600.0, memory: bool = False, pinned: bool = True) -> Usage:
    """Run a client, on its core where pinned. memory: sample the PSS of its tree, which disturbs it; else PSS is 0."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic_ns()
    with tempfile.TemporaryFile() as out:
        place = ["taskset", "-c", str(CLIENT_CORE)] if pinned else []
        process = subprocess.Popen([*place, *argv], stdout=out, stderr=subprocess.STDOUT)
        peak = [0]
        sampler = threading.Thread(target=_sample, args=(process, peak if memory else None))
        sampler.start()
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        sampler.join()
        out.seek(0)
        output = out.read().decode(errors="replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Usage(code, cpu, (time.monotonic_ns() - started) / 1e9, peak[0], started, output)


def _sample(process: "subprocess.Popen[bytes]", peak: list[int] | None) -> None:
    while peak is not None and process.poll() is None:
        peak[0] = max(peak[0], sum(map(_pss, _tree(process.pid))))
        time.sleep(0.25)


def _tree(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
