"""Time `prony matrix full-sweep` on real master configs, beside what the reference must at least spend.

The reference's tool is not part of this project. Its peer here does only what that tool certainly does before it makes
a row: it imports PyYAML and pydantic and reads the same three files with the pure-Python loader. So the ratio is an
upper bound of the ratio to the whole reference. Whole processes, alternating, medians.
Growth: the same keys written 1, 10 and 100 times under other names.

    python bench/matrix.py CONFIGS_DIR [--most 100]
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

RUNS = 7
MASTERS = ("nvidia-master.yaml", "amd-master.yaml")
PEER = "import argparse, json, sys, pydantic, yaml\nfor name in sys.argv[1:]:\n    yaml.safe_load(open(name))\n"
BOUND = 0.40
TOP_LEVEL_KEY = re.compile(r"^(\w[^\s:]*:)", re.MULTILINE)


def wall_s(command: Sequence[str]) -> float:
    """Return the wall time of one whole process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def sweep(files: Sequence[Path], runners: Path) -> list[str]:
    """Return the command that prints every row of some master configs."""
    prony = str(Path(sys.executable).parent / "prony")
    return [prony, "matrix", "full-sweep", "--config-files", *map(str, files), "--runner-config", str(runners)]


def multiplied(source: Path, times: int, folder: Path) -> Path:
    """Write a master's keys several times, each time under other names."""
    text = source.read_text()
    copies = [text, *(TOP_LEVEL_KEY.sub(rf"copy{number}-\1", text) for number in range(1, times))]
    target = folder / f"{times}-{source.name}"
    target.write_text("\n".join(copies))
    return target


def compare(files: Sequence[Path], runners: Path) -> None:
    """Print both wall times and their ratio."""
    ours, theirs = sweep(files, runners), [sys.executable, "-c", PEER, *map(str, (*files, runners))]
    walls: dict[str, list[float]] = {"ours": [], "peer": []}
    for number in range(RUNS + 1):
        for name, command in (("ours", ours), ("peer", theirs)):
            wall = wall_s(command)
            if number:  # the first of each warms the caches of the disk
                walls[name].append(wall)
    rows = len(json.loads(subprocess.run(ours, check=True, capture_output=True).stdout))
    own, peer = statistics.median(walls["ours"]), statistics.median(walls["peer"])
    print(f"{'prony matrix full-sweep':<44}{own * 1e3:>8.0f} ms   {rows} rows")
    print(f"{'the least that the reference does':<44}{peer * 1e3:>8.0f} ms")
    print(f"{'ratio, at most (bound 0.40)':<44}{own / peer:>8.2f}      {verdict(own / peer)}")


def verdict(ratio: float) -> str:
    """Say whether the bound holds."""
    return "ok" if ratio <= BOUND else "MISSED"


def growth(files: Sequence[Path], runners: Path, most: int) -> None:
    """Print wall times of larger files, and what each costs per copy beyond the start of the process."""
    with tempfile.TemporaryDirectory() as name:
        start_s = min(wall_s([sys.executable, "-c", "import prony.spec.compat.generate"]) for _ in range(3))
        for times in (1, 10, 100):
            if times <= most:
                larger = [multiplied(file, times, Path(name)) for file in files]
                wall = min(wall_s(sweep(larger, runners)) for _ in range(3 if times < 100 else 1))
                per_copy = (wall - start_s) / times
                print(f"{times:>4}x the keys{wall:>10.2f} s{per_copy * 1e3:>10.0f} ms per copy")


def main() -> None:
    """Read the folder of the master configs and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("configs", type=Path, help="folder with the two master configs and runners.yaml")
    parser.add_argument("--most", type=int, default=100, help="largest multiple of the files to try")
    arguments = parser.parse_args()
    files = [arguments.configs / name for name in MASTERS]
    runners = arguments.configs / "runners.yaml"
    compare(files, runners)
    growth(files, runners, arguments.most)


if __name__ == "__main__":
    main()
