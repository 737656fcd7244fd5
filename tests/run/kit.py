"""Jobs on a tiny server, and how supervisors of them are started; used by tests and by the processes they start."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from prony.plan.job import Job, Launch
from prony.plan.planner import group
from prony.recipe.deployment import Deployment, EnvVar, ModelRef, Probe, Role
from prony.run.folder import ExitRecord, JobFolder
from prony.spec.load import LoadPlan
from prony.spec.point import FixedSeqLen, Point, RolePool, Topology

TINY = Path(__file__).with_name("tiny_server.py")
SUPERVISOR = (sys.executable, "-m", "prony", "job", "run")
TOPOLOGY = Topology(pools=(RolePool(role="agg"),))


def make_deployment(
    *options: str, model: ModelRef | None = None, probe_s: float = 20.0, env: tuple[EnvVar, ...] = ()
) -> Deployment:
    """Return a deployment of the tiny server with some of its options."""
    argv = ("{python}", str(TINY), "--port", "{port:http}", *options)
    return Deployment(
        engine="tiny",
        image="none",
        model=model or ModelRef(id="tiny"),
        served_model="tiny",
        topology=TOPOLOGY,
        roles=(Role(name="agg", argv=argv, env=env, ready=Probe(timeout_s=probe_s)),),
        recipe="tests",
    )


def make_job(
    deployment: Deployment, concurrency: int = 1, requests: int = 4, time_limit_s: float = 60.0, key: str = "tiny-key"
) -> Job:
    """Return a job with a small load."""
    point = Point(
        config_key=key,
        image="none",
        model="tiny",
        model_prefix="tiny",
        precision="fp8",
        framework="tiny",
        runner="cpu-local",
        topology=deployment.topology,
        workload=FixedSeqLen(isl=8, osl=4),
        concurrency=concurrency,
    )
    load = LoadPlan(isl=8, osl=4, concurrency=concurrency, requests=requests, seed=concurrency, request_timeout_s=20)
    return Job(point=point, deployment=deployment, load=load, time_limit_s=time_limit_s)


def make_launches(deployment: Deployment, *concurrencies: int, requests: int = 4) -> tuple[Launch, ...]:
    """Return the launches of a sweep over concurrencies."""
    return group([make_job(deployment, concurrency, requests) for concurrency in concurrencies])


def ended(folder: JobFolder) -> ExitRecord:
    """Return the exit record, which must be there."""
    record = folder.exit_record()
    assert record is not None, f"{folder.path} has no exit record"
    return record


def eventually(condition: Callable[[], bool], within_s: float = 15.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
