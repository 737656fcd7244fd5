"""From an event log to a result: the row, its provenance, and the files that stand behind it."""

from dataclasses import dataclass
from pathlib import Path

from prony import __version__
from prony.base.files import sha256_of
from prony.base.finding import Finding
from prony.base.model import digest
from prony.measure.acceptance import judge_acceptance, realised
from prony.measure.definitions import DEFINITIONS, measure
from prony.measure.eventlog import EventLog
from prony.measure.observed import Acceptance, EngineFacts
from prony.measure.result import Artifact, Provenance, Result, RoleCommand, Row
from prony.measure.storage import read_log
from prony.measure.verdicts import judge
from prony.plan.job import Job
from prony.recipe.deployment import Deployment, SpecDecode
from prony.run.folder import JobFolder
from prony.run.machine import git_commit, this_machine
from prony.spec.point import FixedSeqLen


@dataclass(frozen=True)
class Served:
    """What only the run knows: what the engine says of itself, and when it was loaded (ISO 8601 UTC)."""

    engine_version: str | None
    started_at: str
    ended_at: str
    kv_pool_tokens: int | None = None


def build_result(job: Job, folder: JobFolder, served: Served) -> Result:
    """Measure and judge what the client left in the folder. Raises MeasurementError when the log cannot be used."""
    log = read_log(folder.events_file)
    used = gpus_used(job.deployment)
    measurements = measure(
        log, gpus_used=used, gpus_prefill=_gpus_of(job, "prefill"), gpus_decode=_gpus_of(job, "decode")
    )
    drafts = _acceptance(job.deployment.spec, log)
    verdicts = (
        *judge(log, job.load, measurements),
        *_topology_verdicts(job),
        *_transfer_verdicts(job, log.engine),
        *(judge_acceptance(drafts) if drafts else ()),
    )
    point, workload = job.point, job.point.workload
    fixed = workload if isinstance(workload, FixedSeqLen) else None
    row = Row(
        key=job.key,
        origin="measured",
        source=this_machine().hostname,
        config_key=point.config_key,
        model=point.model,
        model_prefix=point.model_prefix,
        hardware=hardware(job),
        runner=point.runner,
        framework=point.framework,
        engine_version=served.engine_version,
        precision=point.precision,
        spec_decoding=point.spec_decoding,
        disagg=point.disagg,
        multinode=point.multinode,
        topology=point.topology,
        gpus_used=used,
        workload=workload.kind,
        isl=fixed.isl if fixed else None,
        osl=fixed.osl if fixed else None,
        concurrency=point.concurrency,
        repeat=job.repeat,
        image=point.image,
        measured_at=served.started_at,
        client=f"prony {__version__}",
        simulated=job.deployment.simulated,
        measurements=measurements,
        verdicts=verdicts,
        provenance=_provenance(job, log, served),
        acceptance=drafts,
    )
    return Result(row=row, artifacts=_artifacts(folder))


def _acceptance(spec: SpecDecode | None, log: EventLog) -> Acceptance | None:
    """Return what was asked of drafts and what came out."""
    if spec is None:
        return None
    found = realised(log.engine)
    return Acceptance(
        mode=spec.acceptance,
        method=spec.method,
        steps=spec.steps,
        asked=spec.acceptance_length,
        curve=spec.curve,
        curve_digest=spec.curve_digest,
        realised=found.length if found else None,
        standard_error=found.standard_error if found else None,
        drafts=found.drafts if found else None,
        rates=found.rates if found else (),
    )


def gpus_used(deployment: Deployment) -> int:
    """Return the devices visible to the roles' processes; a CPU host counts as one, a simulation as its topology."""
    if deployment.simulated:
        return deployment.topology.gpus
    return sum(role.gpus * role.replicas for role in deployment.roles) or 1


def hardware(job: Job) -> str:
    """Return the SKU: what the topology says, else `cpu` without devices, else the runner's first word."""
    named = job.point.topology.pools[0].hardware
    if named:
        return named
    on_cpu = not job.deployment.simulated and not any(role.gpus for role in job.deployment.roles)
    return "cpu" if on_cpu else job.point.runner.partition("-")[0]


def _gpus_of(job: Job, role: str) -> int | None:
    pools = [pool.gpus for pool in job.deployment.topology.pools if pool.role == role]
    return sum(pools) if pools else None


def _topology_verdicts(job: Job) -> tuple[Finding, ...]:
    visible = sum(role.gpus * role.replicas for role in job.deployment.roles)
    asked = job.deployment.topology.gpus
    if job.deployment.simulated or visible in (0, asked):
        return ()
    message = f"{visible} devices are visible to the servers, the topology says {asked}"
    return (Finding(rule="devices-match-topology", severity="invalid", message=message, fix="mend the recipe"),)


def _transfer_verdicts(job: Job, engine: EngineFacts | None) -> tuple[Finding, ...]:
    """Refuse prefill and decode apart where decode fetched nothing: it computed the prompts itself."""
    if _gpus_of(job, "prefill") is None or engine is None or engine.external_hits != 0:
        return ()
    message = "decode workers fetched the KV of no prompt token: they computed the prompts themselves"
    fix = "look for the connector in the workers' logs; prompts shorter than a KV block are never handed over"
    return (Finding(rule="kv-handed-over", severity="invalid", message=message, fix=fix),)


def _provenance(job: Job, log: EventLog, served: Served) -> Provenance:
    return Provenance(
        prony_version=__version__,
        git_commit=git_commit(job.config_file),
        config_file=job.config_file,
        config_digest=job.config_digest,
        recipe=job.deployment.recipe,
        recipe_digest=digest(job.deployment),
        job_key=job.key,
        launch_key=job.launch_key,
        engine=job.deployment.engine,
        engine_version=served.engine_version,
        image=job.deployment.image,
        image_digest=job.deployment.image_digest,
        machine=this_machine(),
        clock=log.client.clock,
        seed=job.load.seed,
        started_at=served.started_at,
        ended_at=served.ended_at,
        definitions=DEFINITIONS,
        commands=tuple(
            RoleCommand(role=role.name, replicas=role.replicas, command=role.argv, env=role.env)
            for role in job.deployment.roles
        ),
        model=job.deployment.model,
        client=log.client,
        disturbance=log.disturbance,
        engine_facts=log.engine,
        kv_pool_tokens=served.kv_pool_tokens,
    )


def _artifacts(folder: JobFolder) -> tuple[Artifact, ...]:
    paths = [folder.job_file, folder.events_file, *sorted(folder.logs.glob("*.log"))]
    return tuple(_artifact(folder.path, path) for path in paths if path.is_file())


def _artifact(root: Path, path: Path) -> Artifact:
    return Artifact(name=str(path.relative_to(root)), sha256=sha256_of(path), size_bytes=path.stat().st_size)
