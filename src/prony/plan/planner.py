"""Points to jobs: literal loads from rules, jobs grouped by the server start that they share."""

import hashlib
from collections.abc import Callable, Iterable, Sequence

from pydantic import ValidationError

from prony.base.errors import ConfigError, PlanError
from prony.base.model import first_fault
from prony.plan.job import Job, Launch
from prony.recipe.deployment import Deployment
from prony.spec.expression import evaluate_whole
from prony.spec.load import LoadPlan, LoadRules
from prony.spec.point import FixedSeqLen, Point

SECRET_ENDINGS = ("_TOKEN", "_KEY", "_SECRET", "_PASSWORD")


def plan(
    points: Iterable[Point],
    deploy: Callable[[Point], Deployment],
    rules: LoadRules,
    config_file: str,
    config_digest: str,
) -> tuple[Launch, ...]:
    """Turn points into launches, in the order of the points.

    Equal points are merged into one job; different points that resolve to the same work are refused, since the
    difference between their names would not be in what is measured. Raises PlanError.
    """
    jobs: dict[str, Job] = {}
    for point in dict.fromkeys(points):
        deployment = deploy(point)
        _check(point, deployment)
        for repeat in range(rules.repeats):
            job = Job(
                point=point,
                deployment=deployment,
                load=load_plan(point, rules, repeat),
                repeat=repeat,
                time_limit_s=rules.time_limit_s,
                config_file=config_file,
                config_digest=config_digest,
            )
            if job.key in jobs:
                raise _same_work(jobs[job.key].point, point)
            jobs[job.key] = job
    return group(tuple(jobs.values()))


def group(jobs: Sequence[Job]) -> tuple[Launch, ...]:
    """Group jobs of equal launch key; launches and jobs keep the order in which they first appear."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.launch_key, []).append(job)
    return tuple(Launch(key=key, jobs=tuple(members)) for key, members in groups.items())


def load_plan(point: Point, rules: LoadRules, repeat: int) -> LoadPlan:
    """Evaluate the load rules for a point. Raises PlanError that names the point and the rule."""
    workload = point.workload
    if not isinstance(workload, FixedSeqLen):
        raise PlanError(
            f"{point.label}: no load can be made for a '{workload.kind}' workload",
            allowed="fixed-seq-len",
            fix="choose other keys with --keys",
        )
    names = {"conc": point.concurrency, "isl": workload.isl, "osl": workload.osl}
    try:
        return LoadPlan(
            endpoint=rules.endpoint,
            isl=workload.isl,
            osl=workload.osl,
            range_ratio=rules.range_ratio,
            concurrency=point.concurrency,
            requests=evaluate_whole(rules.requests, names),
            warmups=evaluate_whole(rules.warmups, names),
            seed=derived_seed(rules.seed, workload, point.concurrency, repeat),
            request_timeout_s=rules.request_timeout_s,
        )
    except ValidationError as error:
        raise PlanError(
            f"{point.label}: the load rules give a load that cannot be run: {first_fault(error)}",
            allowed="requests > 0, warmups ≥ 0",
            fix=f"change the load file: requests '{rules.requests}', warmups '{rules.warmups}'",
        ) from None
    except ConfigError as error:
        raise PlanError(f"{point.label}: {error.message}", allowed=error.allowed, fix=error.fix) from None


def derived_seed(seed: int, workload: FixedSeqLen, concurrency: int, repeat: int) -> int:
    """Return 32 bits that differ between loads and are the same for two deployments under equal load.

    So no job finds another job's prompts in a prefix cache, and two engines are compared on the same prompts.
    """
    text = f"prony.seed/1 {seed} {workload.isl} {workload.osl} {concurrency} {repeat}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _check(point: Point, deployment: Deployment) -> None:
    for role in deployment.roles:
        for variable in role.env:
            if variable.name.endswith(SECRET_ENDINGS) and not variable.value.startswith("{env:"):
                raise PlanError(
                    f"{point.label}: role {role.name} sets {variable.name} to a value, which would be kept in job.json",
                    allowed="a reference to the environment of the run",
                    fix=f"write '{{env:{variable.name}}}' in the recipe and export {variable.name}",
                )
    entries = [role for role in deployment.roles if role.name == deployment.entry_role]
    if len(entries) != 1 or entries[0].replicas != 1:
        raise PlanError(
            f"{point.label}: requests enter at role '{deployment.entry_role}', of which there must be exactly one",
            fix="give the recipe one entry role with one replica; a router in front of several is not supported yet",
        )


def _same_work(first: Point, second: Point) -> PlanError:
    names = [name for name in type(first).model_fields if getattr(first, name) != getattr(second, name)]
    return PlanError(
        f"'{first.label}' and '{second.label}' resolve to the same work; they differ only in {', '.join(names)}",
        fix="make the recipe use what differs, or drop one of the two with --keys",
    )
