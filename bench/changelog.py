"""Time `prony changelog check` on a real change log; whole processes, median of 10. Arguments: FILE [CONFIG…]."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 10
BOUND_S = 0.5


def main() -> int:
    """Append one entry to a copy, check it, print the time."""
    log = Path(sys.argv[1])
    prony = str(Path(sys.executable).parent / "prony")
    with tempfile.TemporaryDirectory() as folder:
        head = Path(folder) / "head.yaml"
        head.write_bytes(log.read_bytes())
        add = [
            "changelog",
            "add",
            "--file",
            str(head),
            "--keys",
            "dsr1-fp8-h200-sglang",
            "--description",
            "x",
            "--pr",
            "1",
        ]
        subprocess.run([prony, *add], check=True, stdout=subprocess.DEVNULL)
        command = [prony, "changelog", "check", "--base", str(log), "--head", str(head), "--pr", "1"]
        if sys.argv[2:]:
            command += ["--config-files", *sys.argv[2:]]
        walls = []
        for _ in range(RUNS + 1):
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            walls.append(time.perf_counter() - start)
    wall = statistics.median(walls[1:])
    print(f"{log.stat().st_size} bytes: {wall * 1e3:.0f} ms {'ok' if wall < BOUND_S else 'MISSED'}")
    return 0 if wall < BOUND_S else 1


if __name__ == "__main__":
    sys.exit(main())
