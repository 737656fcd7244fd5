"""Sweeps whose output or store is taken away."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from prony.store.store import open_store
from tests.e2e.conftest import PATIENCE_S, Workbench


def shell(bench: Workbench, line: str) -> subprocess.CompletedProcess[str]:
    command = line.replace("prony run", f"{shlex.quote(sys.executable)} -m prony run")
    return subprocess.run(
        ["bash", "-c", command], cwd=bench.path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def kept(place: Path) -> int:
    with open_store(place, create=False) as store:
        return len(store.rows())


@pytest.mark.parametrize(
    ("sink", "code"), [("| head -1; exit ${PIPESTATUS[0]}", 0), ("> /dev/full", 3), (">&- 2>&-", 0)]
)
def test_output_that_goes_away_never_stops_the_work(simulated: Workbench, sink: str, code: int) -> None:
    simulated.edit("master.yaml", "[1, 2, 4]", "[1, 2]")
    done = shell(simulated, f"prony run bench/master.yaml --store s.db {sink}")
    assert done.returncode == code and "Traceback" not in done.stderr
    assert kept(simulated.path / "s.db") == 2
    assert (simulated.out / "report.html").exists()


def test_an_unusable_store_is_told_before_anything_starts(simulated: Workbench) -> None:
    (simulated.path / "s.db").write_text("this is no database, and long enough to be one" * 100)
    done = simulated.prony("run", "bench/master.yaml", "--store", "s.db")
    assert done.returncode == 3 and "s.db" in done.stderr
    assert not simulated.out.exists()


def test_a_store_that_breaks_during_the_sweep_hides_nothing(simulated: Workbench) -> None:
    simulated.edit("master.yaml", "[1, 2, 4]", "[1]")
    simulated.edit("recipes/sim.yaml", "itl-ms: 2", "itl-ms: 20")
    line = (
        "prony run bench/master.yaml --store 's b.db' | while read -r line; do echo \"$line\"; "
        "case \"$line\" in *running*) rm -f s\\ b.db-*; yes nonsense | head -c 99999 > 's b.db';; esac; done; "
        "exit ${PIPESTATUS[0]}"
    )
    done = shell(simulated, line)
    assert done.returncode == 3
    assert "sim-tiny" in done.stdout.split("tput/GPU")[1] and "s b.db" in done.stderr
    assert " results import prony-out/bench --store 's b.db'" in done.stdout
    assert (simulated.out / "report.html").exists()


def test_a_file_as_out_is_told_as_a_file(simulated: Workbench) -> None:
    done = simulated.prony("run", "bench/master.yaml", "--out", "bench/master.yaml")
    assert done.returncode == 3 and "is a file, not a folder" in done.stderr
