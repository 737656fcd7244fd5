"""The simulated server as a process of its own, and a plain client for it."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 15.0


@dataclass
class Simulator:
    """A running server."""

    port: int
    process: subprocess.Popen[str]

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send one request on a connection of its own; return status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def json(self, path: str, body: Any = None) -> Any:
        status, content = self.ask("GET" if body is None else "POST", path, body)
        assert status == 200, content
        return json.loads(content)

    def events(self, body: dict[str, Any], chat: bool = False) -> list[tuple[float, Any]]:
        """Stream one completion; return (seconds since sending, event) for each SSE event, [DONE] as a string."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.connect()
            sent = time.monotonic()
            connection.request(
                "POST", f"/v1/{'chat/' if chat else ''}completions", json.dumps({"stream": True, **body})
            )
            response = connection.getresponse()
            assert response.status == 200, response.read()
            return [(at - sent, event) for at, event in _sse(response)]
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """Return one of vLLM's metrics."""
        lines = self.ask("GET", "/metrics")[1].decode().splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"vllm:{name}{{"))


def _sse(response: http.client.HTTPResponse) -> Iterator[tuple[float, Any]]:
    for line in response:
        if line.startswith(b"data: "):
            data = line[6:].strip()
            yield time.monotonic(), "[DONE]" if data == b"[DONE]" else json.loads(data)


def start(*options: str, port: int = 0) -> subprocess.Popen[str]:
    """Start the server's process."""
    argv = [sys.executable, "-m", "prony.sim.server", "--port", str(port), "--model", "sim", *options]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@contextlib.contextmanager
def simulator(*options: str) -> Iterator[Simulator]:
    """Run the server until the block ends; it must then leave at once when told."""
    process = start(*options)
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        line = next((line for line in lines if " at http://" in line), "")
        assert line, f"the server ended with {process.wait()}"
        yield Simulator(int(line.rpartition(":")[2]), process)
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def run_to_end(*options: str, port: int = 0) -> tuple[int, str]:
    """Run the server that is expected to end by itself; return its exit code and output."""
    process = start(*options, port=port)
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
    return process.returncode, output
