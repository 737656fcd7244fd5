"""Results and rows: what a job measured, whether it is valid, and where it comes from."""

from typing import Literal

from prony.base.finding import Finding
from prony.base.model import Frozen
from prony.measure.measurement import MOST as MOST
from prony.measure.measurement import STATS as STATS
from prony.measure.measurement import Count as Count
from prony.measure.measurement import Measurement as Measurement
from prony.measure.observed import Acceptance, ClientFacts, Disturbance, EngineFacts
from prony.recipe.deployment import EnvVar, ModelRef
from prony.spec.point import SpecDecoding, Topology


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

    What rows of older versions do not have is empty or None. kv_pool_tokens: what the engine's log says of its pool.
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
    kv_pool_tokens: int | None = None


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
    acceptance: Acceptance | None = None

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
