"""Time `import prony` and `prony --help`, beside a bare interpreter; whole processes, median of 10."""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

RUNS = 10


def median_s(command: Sequence[str]) -> float:
    """Return the median wall time of a command, after one run that is not counted."""
    walls = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        walls.append(time.perf_counter() - start)
    return statistics.median(walls[1:])


def main() -> None:
    """Print one table: wall time, what it adds to the bare interpreter, and the bound."""
    python = sys.executable
    bare = median_s([python, "-c", "pass"])
    cases = (
        ("import prony", [python, "-c", "import prony"], 0.060),
        ("prony --help", [str(Path(python).parent / "prony"), "--help"], 0.150),
    )
    print(f"{'case':<14}{'wall':>10}{'x bare':>9}{'bound':>10}")
    print(f"{'python -c pass':<14}{bare * 1e3:>7.0f} ms{1:>9.2f}{'':>10}")
    for name, command, bound_s in cases:
        wall = median_s(command)
        mark = "ok" if wall < bound_s else "MISSED"
        print(f"{name:<14}{wall * 1e3:>7.0f} ms{wall / bare:>9.2f}{bound_s * 1e3:>7.0f} ms  {mark}")


if __name__ == "__main__":
    main()
