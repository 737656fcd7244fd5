"""Jobs and launches: one load point each, grouped by the server start that they share."""

from typing import Literal, Self

from pydantic import Field, model_validator

from prony.base.model import Frozen, digest
from prony.recipe.deployment import Deployment
from prony.spec.load import MAX_SECONDS, LoadPlan
from prony.spec.point import FixedSeqLen, Point
from prony.spec.workload import FileWorkload


class Job(Frozen):
    """One load on one deployment, one repeat of it: the unit that is run, reused and stored."""

    schema_version: Literal["prony.job/1"] = "prony.job/1"
    point: Point
    deployment: Deployment
    load: LoadPlan
    repeat: int = Field(default=0, ge=0)
    time_limit_s: float = Field(default=3600.0, gt=0, le=MAX_SECONDS)
    config_file: str = ""
    config_digest: str = ""

    @model_validator(mode="after")
    def _labels_equal_what_runs(self) -> Self:
        point, load = self.point, self.load
        if point.concurrency != load.concurrency:
            raise ValueError(f"the point's concurrency is {point.concurrency}, that of the load {load.concurrency}")
        if isinstance(point.workload, FixedSeqLen) and (point.workload.isl, point.workload.osl) != (load.isl, load.osl):
            raise ValueError(f"the point's isl and osl are not those of the load ({load.isl}, {load.osl})")
        if point.topology != self.deployment.topology:
            raise ValueError(f"the point's topology is not that of the deployment ({self.deployment.topology.label})")
        return self

    @property
    def key(self) -> str:
        """Digest of the resolved work. Not in it: names, paths, ports, time limits, priority."""
        workload = self.load.workload
        known = isinstance(workload, FileWorkload) and workload.sha256  # by its content: where it lies is no matter
        exclude = {"workload": {"file"}} if known else None
        return digest(
            {
                "schema": "prony.job/1",
                "deployment": self.deployment.key,
                "workload": self.point.workload.model_dump(mode="json"),
                "load": self.load.model_dump(mode="json", exclude=exclude),
                "repeat": self.repeat,
            }
        )

    @property
    def launch_key(self) -> str:
        """Jobs of equal launch key share one server start."""
        return self.deployment.key


class Launch(Frozen):
    """Jobs that share one server start, in the order in which they run."""

    key: str
    jobs: tuple[Job, ...]

    @property
    def deployment(self) -> Deployment:
        """The deployment that all jobs share."""
        return self.jobs[0].deployment
