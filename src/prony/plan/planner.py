"""Points to jobs: literal loads from rules, jobs grouped by the server start that they share."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from prony.base.errors import ConfigError, PlanError
from prony.plan.job import Job, Launch
from prony.recipe.deployment import Deployment
from prony.spec.expression import evaluate_whole
from prony.spec.load import MAX_CONCURRENCY, MAX_LENGTH, MAX_REQUESTS, MAX_TOKENS, Endpoint, LoadPlan, LoadRules
from prony.spec.point import FixedSeqLen, Point
from prony.spec.workload import MultiTurn

SECRET_ENDINGS = ("_TOKEN", "_KEY", "_SECRET", "_PASSWORD")


def plan(
    points: Iterable[Point],
    deploy: Callable[[Point], Deployment],
    rules: LoadRules,
    config_file: str,
    config_digest: str,
    load_file: str = "",
) -> tuple[Launch, ...]:
    """Turn points into launches, in the order of the points.

    Equal points are merged into one job; different points that resolve to the same work are refused, since the
    difference between their names would not be in what is measured. load_file: where the rules were read, for errors;
    empty for the defaults. Raises PlanError.
    """
    places = _Places(config_file, load_file or "the default load rules")
    jobs: dict[str, Job] = {}
    for point in dict.fromkeys(points):
        deployment = deploy(point)
        check(point, deployment)
        for repeat in range(rules.repeats):
            job = Job(
                point=point,
                deployment=deployment,
                load=_load_plan(point, rules, repeat, places, _endpoint(point, deployment, rules, places)),
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


@dataclass(frozen=True)
class _Places:
    """Where a point's lengths and its load rules were written."""

    config: str
    load: str


def _endpoint(point: Point, deployment: Deployment, rules: LoadRules, places: _Places) -> Endpoint:
    """Return the endpoint that requests go to. Raises PlanError for drafters that would see raw prompts.

    Drafts of random tokens outside the template are accepted far too often (InferenceX pull 649: 3.55 against 2.5).
    """
    if rules.endpoint == "completions" and deployment.chat_template:
        raise PlanError(
            f"{places.load} endpoint: {point.label} drafts, so its prompts must go through the chat template",
            allowed="endpoint: chat",
            fix="set endpoint: chat, or leave it out",
        )
    needs_chat = deployment.chat_template or isinstance(rules.workload, MultiTurn)
    return rules.endpoint or ("chat" if needs_chat else "completions")


def _load_plan(point: Point, rules: LoadRules, repeat: int, places: _Places, endpoint: Endpoint) -> LoadPlan:
    """Evaluate the load rules for a point. Raises PlanError that names the point, the file and the field."""
    workload = point.workload
    if not isinstance(workload, FixedSeqLen):
        raise PlanError(
            f"{point.label}: no load can be made for a '{workload.kind}' workload",
            allowed="fixed-seq-len",
            fix="choose other keys with --keys",
        )
    names = {"conc": point.concurrency, "isl": workload.isl, "osl": workload.osl}

    def computed(field: str, text: str) -> int:
        try:
            return evaluate_whole(text, names)
        except ConfigError as error:
            message = f"{places.load} {field}: {error.message} (for {point.label})"
            raise PlanError(message, allowed=error.allowed, fix=error.fix) from None

    try:
        return LoadPlan(
            endpoint=endpoint,
            isl=workload.isl,
            osl=workload.osl,
            range_ratio=rules.range_ratio,
            concurrency=point.concurrency,
            requests=computed("requests", rules.requests),
            warmups=computed("warmups", rules.warmups),
            seed=derived_seed(rules.seed, workload, point.concurrency, repeat),
            request_timeout_s=rules.request_timeout_s,
            stream=rules.stream,
            arrival=rules.arrival,
            workload=rules.workload,
        )
    except ValidationError as error:
        raise _cannot_be_run(error, point, rules, places) from None


def _cannot_be_run(error: ValidationError, point: Point, rules: LoadRules, places: _Places) -> PlanError:
    """Blame the master config for a point's own numbers and the load file for what its rules make of them."""
    fault = error.errors(include_url=False)[0]
    field = str(fault["loc"][0]) if fault["loc"] else ""
    message = fault["msg"].removeprefix("Value error, ")
    given = f" (is {fault['input']})" if field else ""
    reason = f"{message[:1].lower()}{message[1:]}{given}"
    allowed = (
        f"requests 1 to {MAX_REQUESTS:,}, concurrency 1 to {MAX_CONCURRENCY:,}, isl and osl 1 to {MAX_LENGTH:,}, "
        f"(requests + warmups) * (isl + osl) up to {MAX_TOKENS:,}"
    )
    if field in ("isl", "osl", "concurrency"):
        place = f"{places.config} {point.config_key} {field}"
        return PlanError(f"{place}: {reason} (for {point.label})", allowed=allowed, fix="mend it in the master config")
    rule = f"requests '{rules.requests}', warmups '{rules.warmups}'"
    return PlanError(
        f"{places.load} {field or 'requests'}: {reason} (for {point.label})",
        allowed=allowed,
        fix=f"change the load rules: {rule}",
    )


def derived_seed(seed: int, workload: FixedSeqLen, concurrency: int, repeat: int) -> int:
    """Return 32 bits that differ between loads and are the same for two deployments under equal load.

    So no job finds another job's prompts in a prefix cache, and two engines are compared on the same prompts.
    """
    text = f"prony.seed/1 {seed} {workload.isl} {workload.osl} {concurrency} {repeat}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def check(point: Point, deployment: Deployment) -> None:
    """Raise PlanError for a secret that is written out, and for requests that could enter at several places."""
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
            fix="put a router before them: 'topology: {router: {kind: …}}' in the recipe",
        )


def _same_work(first: Point, second: Point) -> PlanError:
    names = [name for name in type(first).model_fields if getattr(first, name) != getattr(second, name)]
    return PlanError(
        f"'{first.label}' and '{second.label}' resolve to the same work; they differ only in {', '.join(names)}",
        fix="make the recipe use what differs, or drop one of the two with --keys",
    )
