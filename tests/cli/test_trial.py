"""`prony try` on the simulated engine: changes are served, differences are told, nothing becomes official."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.recipe.change import read_changes
from tests.conftest import REPOSITORY

MASTER = str(REPOSITORY / "examples" / "sim" / "master.yaml")
COMMAND = [sys.executable, "-m", "prony", "try", "sim-tiny", "--config", MASTER, "--at", "conc=4"]


def tried(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def test_a_slower_change_is_told_apart_over_pairs_of_launches(tmp_path: Path) -> None:
    done = tried(tmp_path, "--set", "roles.agg.args.itl-ms=12", "--against", "sim-tiny", "--rounds", "3")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    (tpot,) = (line for line in lines if line[1:3] == ["tpot", "p50"])
    assert tpot[-1] == "worse" and tpot[-2] == "3" and tpot[3].startswith("+")
    assert "B: sim-tiny roles.agg.args.itl-ms=12" in done.stdout and "not in the store" in done.stdout
    order = [line.split("starting ")[1] for line in done.stderr.splitlines() if "starting" in line]
    assert order == ["A", "B", "B", "A", "A", "B"]
    assert not list(tmp_path.rglob("*.db"))


def test_one_server_gets_several_loads(tmp_path: Path) -> None:
    done = tried(tmp_path, "--conc", "1", "2", "--set", "served_model=other")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("starting") == 1 and "unofficial: served_model=other" in done.stdout
    rows = [json.loads(path.read_text())["row"] for path in sorted(tmp_path.rglob("result.json"))]
    assert [row["concurrency"] for row in rows] == [1, 2] and not any(row["official"] for row in rows)


def test_a_held_server_stays_until_it_is_interrupted(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--hold"], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        for raw in process.stderr:
            if b"held at http://127.0.0.1:" in raw:
                break
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and b"sim-tiny" in out


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense", "no NAME=VALUE"),
        ("roles.agg.arg.x=1", "'arg' is not a field"),
        ("extends=other", "'extends' is of a recipe file, not of a trial"),
    ],
)
def test_what_no_recipe_can_say_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read_changes([text])


def test_a_name_below_args_may_hold_dots_and_values_are_yaml() -> None:
    (leaf,) = read_changes(["roles.agg.args.config.kv_cache_config.dtype=fp8"])
    assert leaf.path == ("roles", "agg", "args", "config.kv_cache_config.dtype") and leaf.value == "fp8"
    (off,) = read_changes(["roles.agg.args.slots="])
    assert off.value is None
    (flag,) = read_changes(["roles.agg.args.no-warmup=true"])
    assert flag.value is True
