"""A job folder that somebody edited: refused with file and field before anything starts, or run as what it is."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prony.base.clock import SystemClock
from prony.base.errors import ConfigError, PlanError
from prony.run.folder import JobFolder
from prony.run.job import run_jobs
from prony.run.sweep import Sweep
from tests.run.conftest import Bench
from tests.run.kit import ended, make_deployment, make_job, make_launches
from tests.run.test_sweep import PaperExecutor


def edit(folder: JobFolder, change: Callable[[dict[str, Any]], None]) -> None:
    """Change job.json as an editor would."""
    job = json.loads(folder.job_file.read_text())
    change(job)
    folder.job_file.write_text(json.dumps(job).replace("Infinity", "1e400"))


def more_requests(job: dict[str, Any]) -> None:
    job["load"]["requests"] = 5


def test_changed_load_in_the_folder_of_another_job_is_refused(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment()))
    edit(folder, more_requests)
    refused = bench.run(folder)
    assert refused.returncode == 2
    assert f"its folder is that of job {folder.path.name}" in refused.stderr
    assert "what to do: " in refused.stderr
    assert {path.name for path in folder.path.iterdir()} == {"job.json"}


def test_changed_load_runs_in_a_folder_of_its_own_name(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment()), "by-hand")
    edit(folder, more_requests)
    assert bench.run(folder).returncode == 0


def test_result_of_another_job_is_not_taken_over_by_a_changed_one(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment()), "by-hand")
    assert bench.run(folder).returncode == 0
    assert ended(folder).job_key == folder.job().key
    edit(folder, more_requests)
    refused = bench.run(folder)
    assert refused.returncode == 2
    assert "result.json: is of job" in refused.stderr
    folder.result_file.unlink()
    assert "exit.json: is of job" in bench.run(folder).stderr


def test_sweep_whose_finished_job_was_edited_is_not_gone_on_with(bench: Bench) -> None:
    launches = make_launches(make_deployment(), 1, 2)
    paper = PaperExecutor()
    with Sweep.create(bench.directory, launches) as sweep:
        sweep.step(paper)
        folder = sweep.folder(launches[0].jobs[0].key)
        paper.end(folder.path)
        sweep.step(paper)
        assert sweep.finished() == (folder,)
    edit(folder, more_requests)
    with pytest.raises(ConfigError, match="its folder is that of job"):
        Sweep.open(bench.directory, launches)


def test_new_sweep_does_not_adopt_a_result_of_another_job(bench: Bench) -> None:
    launches = make_launches(make_deployment(), 1, 2)
    folders = [bench.folder(job) for job in launches[0].jobs]
    assert bench.run(folders[0]).returncode == 0
    shutil.copy(folders[0].result_file, folders[1].result_file)
    with pytest.raises(ConfigError, match="is of job"):
        Sweep.create(bench.directory, launches)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no program": (lambda job: role(job).update(argv=[]), "deployment.roles.0.argv"),
    "an empty program": (lambda job: role(job).update(argv=[""]), "argv names no program"),
    "an argument with NUL": (lambda job: role(job)["argv"].append("a\0b"), "holds a NUL character"),
    "a variable with NUL": (lambda job: role(job).update(env=[{"name": "A", "value": "\0"}]), "holds a NUL character"),
    "a variable's name": (lambda job: role(job).update(env=[{"name": "A=B", "value": ""}]), "env.0.name"),
    "no replica": (lambda job: role(job).update(replicas=0), "deployment.roles.0.replicas"),
    "two entry replicas": (lambda job: role(job).update(replicas=2), "exactly one"),
    "no roles": (lambda job: job["deployment"].update(roles=[]), "deployment.roles"),
    "an entry that is not there": (lambda job: job["deployment"].update(entry_role="decode"), "entry_role is 'decode'"),
    "a port without a name": (lambda job: role(job).update(ports=[""]), "ports"),
    "a probe's port that is not there": (lambda job: role(job).update(ports=["grpc"]), "ready.port is 'http'"),
    "a probe without end": (lambda job: role(job)["ready"].update(timeout_s=float("inf")), "ready.timeout_s"),
    "a timeout without end": (lambda job: job["load"].update(request_timeout_s=float("inf")), "request_timeout_s"),
    "a time limit without end": (lambda job: job.update(time_limit_s=float("inf")), "time_limit_s"),
    "too many requests": (lambda job: job["load"].update(requests=10**12), "load.requests"),
    "too many tokens": (lambda job: job["load"].update(requests=10**7, isl=10**6), "tokens in all requests"),
    "another concurrency": (lambda job: job["point"].update(concurrency=7), "concurrency is 7, that of the load 1"),
    "other lengths": (lambda job: job["point"]["workload"].update(osl=9), "isl and osl are not those of the load"),
    "a negative seed": (lambda job: job["load"].update(seed=-1), "load.seed"),
}


def role(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["deployment"]["roles"][0]
    return found


@pytest.mark.parametrize("what", CHANGES)
def test_job_that_cannot_be_run_is_refused_with_its_field(tmp_path: Path, what: str) -> None:
    change, says = CHANGES[what]
    folder = Bench(tmp_path).folder(make_job(make_deployment()), "by-hand")
    edit(folder, change)
    with pytest.raises((ConfigError, PlanError)) as caught:
        run_jobs([folder.path], None, SystemClock())
    assert says in str(caught.value)
    assert caught.value.exit_code == 2
    assert {path.name for path in folder.path.iterdir()} == {"job.json"}
