"""A small OpenAI-compatible server with faults on demand, run as a deployment by the tests of `prony.run`.

It imports nothing of Prony, so that it starts fast and what dies is never Prony's own code.
"""

import argparse
import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

options = argparse.Namespace()


class Server(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    request_queue_size = 64


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answered = 0

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/health" and options.hang:
            time.sleep(60)
        body = b'{"version": "tiny-1.0"}' if self.path == "/version" else b"{}"
        self.send_response(200 if self.path in ("/health", "/version") else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Handler.answered += 1
        if options.die_after and Handler.answered > options.die_after:
            print("fatal: out of imaginary memory", flush=True)
            os._exit(41)
        time.sleep(options.delay)
        prompt = asked["prompt"]
        counted = len(prompt) if isinstance(prompt, list) else len(prompt.split())
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(asked["max_tokens"]):
            self.event({"choices": [{"index": 0, "text": " a", "finish_reason": None}]})
        usage = {"prompt_tokens": counted, "completion_tokens": asked["max_tokens"]}
        self.event({"choices": [], "usage": {**usage, "total_tokens": sum(usage.values())}})
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def event(self, content: object) -> None:
        self.chunk(b"data: " + json.dumps(content).encode() + b"\n\n")

    def chunk(self, content: bytes) -> None:
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")


def say_goodbye(*_: object) -> None:
    print("goodbye", flush=True)
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--die-at-start", action="store_true")
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--die-after", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--escape", action="store_true")
    parser.add_argument("--starts", type=Path, help="a file that gets one line per start")
    parser.parse_args(namespace=options)
    print(f"tiny server on {options.port}, password {os.environ.get('TINY_TOKEN', 'unset')}", flush=True)
    if options.starts:
        with options.starts.open("a") as file:
            file.write(f"{options.port}\n")
    if options.die_at_start:
        print("error: no such device", flush=True)
        sys.exit(7)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if options.ignore_term else say_goodbye)
    if options.escape:
        subprocess.Popen(["setsid", "nohup", "sh", "-c", "trap '' TERM HUP; sleep 300"])
    try:
        server = Server(("127.0.0.1", options.port), Handler)
    except OSError as error:
        sys.exit(f"cannot listen on {options.port}: {error}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    signal.pause()
    while options.ignore_term:
        signal.pause()


if __name__ == "__main__":
    main()
