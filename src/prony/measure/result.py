"""Results and rows: what a job measured, whether it is valid, and where it comes from."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from prony.base.finding import Finding
from prony.base.model import Frozen
from prony.measure.observed import ClientFacts, Disturbance, EngineFacts
from prony.measure.registry import is_metric
from prony.recipe.deployment import EnvVar, ModelRef
from prony.spec.point import SpecDecoding, Topology

MOST = 1_000_000_000
"""The greatest count that a row may state: devices, tokens of a request, requests in flight."""
Count = Annotated[int, Field(ge=0, le=MOST)]
STATS = ("mean", "std", "p50", "p90", "p95", "p99", "p999", "value")


def _registered(key: str) -> str:
    if not is_metric(key):
        raise ValueError(f"'{key}' is not a metric")
    return key


def _known_stat(stat: str) -> str:
    if stat not in STATS:
        raise ValueError(f"'{stat}' is not a statistic: {', '.join(STATS)}")
    return stat


class Measurement(Frozen):
    """One finite number. `metric` is a registry key, unit as registered there.

    stat: mean, std, p50, p90, p95, p99, p999 or value; ci95: interval of the mean or of the value; n: how many
    observations stand behind it; supported: false for a percentile with n < 10 / (1 - q).
    """

    metric: Annotated[str, AfterValidator(_registered)]
    stat: Annotated[str, AfterValidator(_known_stat)]
    value: float
    ci95: tuple[float, float] | None = None
    n: Count | None = None
    supported: bool = True


class Machine(Frozen):
    """The machine that measured."""

    hostname: str
    cpu: str
    cores: int
    memory_bytes: int
    kernel: str
    accelerators: tuple[str, ...] = ()


class RoleCommand(Frozen):
    """How the processes of one role were started; placeholders such as `{port:http}` and `{env:NAME}` stay."""

    role: str
    replicas: int
    command: tuple[str, ...]
    env: tuple[EnvVar, ...] = ()


class Provenance(Frozen):
    """Who, what, where, with which clock. Digests are sha256 hex; times ISO 8601 UTC.

    What rows of older versions do not have is empty or None.
    """

    prony_version: str
    git_commit: str | None
    config_file: str
    config_digest: str
    recipe: str
    recipe_digest: str
    job_key: str
    launch_key: str
    engine: str
    engine_version: str | None
    image: str
    image_digest: str | None
    machine: Machine
    clock: str
    seed: int
    started_at: str
    ended_at: str
    definitions: str
    commands: tuple[RoleCommand, ...] = ()
    model: ModelRef | None = None
    client: ClientFacts | None = None
    disturbance: Disturbance | None = None
    engine_facts: EngineFacts | None = None


class Artifact(Frozen):
    """A file of the job folder, by content."""

    name: str
    sha256: str
    size_bytes: int


class Row(Frozen):
    """What is known of one point: read-only, the same for own and imported results.

    key: the job key, or the digest of an imported row's identity. hardware: SKU (`mi355x`, `cpu`).
    gpus_used: devices visible to the roles' processes; gpus_allocated: booked. A CPU host counts as one device.
    measured_at: ISO 8601, UTC; the day alone when an imported source says no more, empty when it says nothing.
    """

    key: str
    origin: Literal["measured", "imported"]
    source: str
    config_key: str | None = None
    model: str
    model_prefix: str
    hardware: str
    runner: str | None = None
    framework: str
    engine_version: str | None = None
    precision: str
    spec_decoding: SpecDecoding
    disagg: bool
    multinode: bool
    topology: Topology
    gpus_used: Count
    gpus_allocated: Count | None = None
    workload: str
    isl: Count | None
    osl: Count | None
    concurrency: Count
    repeat: Count = 0
    image: str | None = None
    measured_at: str
    client: str
    simulated: bool = False
    official: bool = False
    measurements: tuple[Measurement, ...]
    verdicts: tuple[Finding, ...] = ()
    provenance: Provenance | None = None

    @property
    def valid(self) -> bool:
        """No verdict makes this row unusable."""
        return all(verdict.severity != "invalid" for verdict in self.verdicts)

    def value(self, metric: str, stat: str = "value") -> float | None:
        """Return one number in the registry's unit, or None when it was not measured."""
        for measurement in self.measurements:
            if measurement.metric == metric and measurement.stat == stat:
                return measurement.value
        return None


class Result(Frozen):
    """What a job folder ends with: the row, and its artifacts."""

    schema_version: Literal["prony.result/1"] = "prony.result/1"
    row: Row
    artifacts: tuple[Artifact, ...] = ()
