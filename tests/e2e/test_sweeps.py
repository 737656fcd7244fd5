"""From a config to a report, on the simulated and on the real engine."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from prony.base.model import read_model
from prony.measure.eventlog import Fault, Kind
from prony.measure.result import Result
from prony.measure.storage import read_log
from prony.run.folder import ExitRecord
from tests.e2e.conftest import PATIENCE_S, Workbench

SECOND = """
sim-second:
  image: prony:sim
  model: prony/sim-tiny
  model-prefix: simtiny
  runner: cpu-local
  precision: fp8
  framework: sim
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 32
      osl: 8
      search-space:
      - { tp: 1, conc-list: [1] }
"""


def results(out: Path) -> list[Result]:
    return [read_model(path, Result) for path in sorted(out.glob("jobs/*/result.json"))]


def test_a_sweep_ends_with_table_report_and_results(simulated: Workbench) -> None:
    done = simulated.prony("run", "bench/master.yaml")
    assert done.returncode == 0, done.stderr
    assert "3 points on 1 server start" in done.stdout
    assert "prony serve" in done.stdout.split("next: ")[1]
    assert sorted(result.row.concurrency for result in results(simulated.out)) == [1, 2, 4]
    page = (simulated.out / "report.html").read_text()
    assert "<html" in page and all(result.row.key in page for result in results(simulated.out))
    listed = json.loads(simulated.prony("results", "list", "--json").stdout)
    assert {row["key"] for row in listed} == {result.row.key for result in results(simulated.out)}


def test_running_again_makes_a_new_folder_and_loses_nothing(simulated: Workbench) -> None:
    simulated.edit("master.yaml", "[1, 2, 4]", "[2]")
    assert simulated.prony("run", "bench/master.yaml").returncode == 0
    again = simulated.prony("run", "bench/master.yaml")
    assert again.returncode == 0 and "prony-out/bench-2" in again.stdout
    assert len(results(simulated.out)) == len(results(simulated.path / "prony-out/bench-2")) == 1


def test_killed_controller_resumes_without_running_a_finished_point_again(simulated: Workbench) -> None:
    simulated.edit("recipes/sim.yaml", "itl-ms: 2", "itl-ms: 20")
    running = simulated.start("run", "bench/master.yaml")
    deadline = time.monotonic() + PATIENCE_S
    while not list(simulated.out.glob("jobs/*/exit.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    before = {path: path.read_bytes() for path in simulated.out.glob("jobs/*/exit.json")}
    assert 1 <= len(before) < 3
    resumed = simulated.prony("run", "bench/master.yaml", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert len(results(simulated.out)) == 3
    assert all(path.read_bytes() == content for path, content in before.items())
    assert not list(simulated.out.glob("jobs/*/attempts"))


def test_one_dead_server_fails_its_points_and_the_others_still_run(simulated: Workbench) -> None:
    recipe = simulated.path / "bench/recipes/dying.yaml"
    recipe.write_text(
        "schema: 1\nengine: sim\nkeys: ['dying']\nroles: {agg: {args: {ttft-ms: 20, itl-ms: 2, fault: oom-at-load}}}\n"
    )
    with simulated.master.open("a") as file:
        file.write(SECOND.replace("sim-second", "dying"))
    done = simulated.prony("run", "bench/master.yaml")
    assert done.returncode == 3
    assert "dying conc=1 (failed)" in done.stderr and "before it was ready" in done.stderr
    assert "what to do:" in done.stderr and "Traceback" not in done.stderr
    assert "--resume" in done.stdout
    assert len(results(simulated.out)) == 3


def test_interrupt_keeps_finished_points_and_says_how_to_go_on(simulated: Workbench) -> None:
    simulated.edit("recipes/sim.yaml", "itl-ms: 2", "itl-ms: 40")
    running = simulated.start("run", "bench/master.yaml")
    deadline = time.monotonic() + PATIENCE_S
    while not list(simulated.out.glob("jobs/*/exit.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGINT)
    assert running.wait(PATIENCE_S) == 130
    kept = len(results(simulated.out))
    assert 1 <= kept < 3
    assert simulated.prony("run", "bench/master.yaml", "--resume").returncode == 0
    assert len(results(simulated.out)) == 3


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("master.yaml", "conc-list", "conclist", ("master.yaml:15 sim-tiny: 'conclist' is not a field", "conc-list")),
        ("master.yaml", "tp: 1", "tp: one", ("master.yaml:15 sim-tiny", "tp", "'one'")),
        ("master.yaml", "osl: 16", "osl: 16\n      osl: 8", ("master.yaml:14", "'osl' stands here twice")),
        ("master.yaml", "cpu-local", "gpu-farm", ("master.yaml:2 sim-tiny: runner 'gpu-farm'", "cpu-local")),
        ("load.yaml", "requests:", "request:", ("load.yaml:3", "did you mean 'requests'?")),
        ("load.yaml", "4 * conc", "4 * cnc", ("load.yaml:3", "'cnc'", "conc, isl, osl")),
        ("recipes/sim.yaml", "itl-ms", "itl-mss", ("sim.yaml:7", "itl-mss", "itl-ms")),
        ("runners.yaml", "gpus-per-node: 1", "gpus-per-node: 0", ("runners.yaml:8", "gpus-per-node")),
    ],
)
def test_a_fault_in_a_file_is_told_with_its_place_and_nothing_starts(
    simulated: Workbench, file: str, old: str, new: str, words: tuple[str, ...]
) -> None:
    simulated.edit(file, old, new)
    done = simulated.prony("run", "bench/master.yaml")
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert not simulated.out.exists()


def test_the_real_engine_counts_the_tokens_that_were_asked(real: Workbench) -> None:
    real.edit("master.yaml", "conc-list: [1, 2, 4]", "conc-list: [2]")
    done = real.prony("run", "bench/master.yaml")
    assert done.returncode == 0, done.stderr
    rows = [result.row for result in results(real.out)]
    assert sorted(row.spec_decoding for row in rows) == ["draft_model", "none"]
    for folder in real.out.glob("jobs/*"):
        log = read_log(folder / "events.npz")
        requests, events = log.requests, log.events
        assert (requests.fault == Fault.OK).all()
        assert (requests.output_counted == requests.output_planned).all()
        assert (requests.input_counted == requests.input_planned).all()
        assert (requests.cached_counted <= 0).all()
        content = np.isin(events.kind, (Kind.CONTENT,))
        first = np.array([events.at[content & (events.request == index)].min() for index in range(len(requests))])
        row = read_model(folder / "result.json", Result).row
        assert row.value("ttft", "mean") == pytest.approx(float((first - requests.sent).mean()) / 1e9)
        assert read_model(folder / "exit.json", ExitRecord).status == "succeeded"
        assert row.provenance is not None and "xllamacpp" in (row.provenance.engine_version or "")
