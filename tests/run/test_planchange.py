"""What a refused plan says about the fields that changed."""

import itertools
from pathlib import Path

import pytest

from prony.base.errors import PlanError
from prony.plan.job import Launch
from prony.run.planchange import differences
from prony.run.sweep import Sweep
from tests.run.kit import make_deployment, make_job, make_launches


def started(directory: Path, launches: tuple[Launch, ...]) -> None:
    with Sweep.create(directory, launches):
        pass


def refused(directory: Path, launches: tuple[Launch, ...]) -> str:
    with pytest.raises(PlanError, match="the plan has changed") as caught:
        Sweep.open(directory, launches)
    return caught.value.message


def test_a_changed_load_rule_is_named_with_both_values(tmp_path: Path) -> None:
    started(tmp_path, make_launches(make_deployment(), 1, 2, requests=4))
    told = refused(tmp_path, make_launches(make_deployment(), 1, 2, requests=6))
    assert "tiny-key conc=1, tiny-key conc=2: load.requests 4 → 6" in told
    assert "new:" not in told and "gone:" not in told


def test_a_changed_flag_of_a_server_is_named(tmp_path: Path) -> None:
    started(tmp_path, make_launches(make_deployment(), 1))
    told = refused(tmp_path, make_launches(make_deployment("--slow"), 1))
    assert "deployment.roles[0].argv" in told and "load" not in told


def test_jobs_without_a_counterpart_are_new_or_gone(tmp_path: Path) -> None:
    started(tmp_path, make_launches(make_deployment(), 1, 2))
    told = refused(tmp_path, make_launches(make_deployment(), 1, 4))
    assert "new: tiny-key conc=4" in told and "gone: tiny-key conc=2" in told and "conc=1" not in told


def test_a_damaged_job_file_still_gives_an_answer(tmp_path: Path) -> None:
    launches = make_launches(make_deployment(), 1)
    started(tmp_path, launches)
    next(tmp_path.glob("jobs/*/job.json")).write_text("{")
    assert "gone: tiny-key conc=1" in refused(tmp_path, make_launches(make_deployment(), 1, requests=9))


def test_names_of_files_and_time_limits_are_no_difference() -> None:
    job = make_job(make_deployment())
    same = job.model_copy(update={"config_file": "x", "config_digest": "y", "time_limit_s": 1.0})
    assert list(differences(job, same)) == []


def test_two_jobs_differ_exactly_where_a_field_was_changed() -> None:
    job = make_job(make_deployment())
    changes = {"seed": 77, "warmups": 3, "range_ratio": 0.5}
    for size in range(len(changes) + 1):
        for names in itertools.combinations(changes, size):
            load = job.load.model_copy(update={name: changes[name] for name in names})
            found = list(differences(job, job.model_copy(update={"load": load})))
            assert {line.split()[0] for line in found} == {f"load.{name}" for name in names}
