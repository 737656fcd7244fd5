"""Jobs and launches: one load point each, grouped by the server start that they share."""

from typing import Literal

from pydantic import Field

from prony.base.model import Frozen, digest
from prony.recipe.deployment import Deployment
from prony.spec.load import LoadPlan
from prony.spec.point import Point


class Job(Frozen):
    """One load on one deployment, one repeat of it: the unit that is run, reused and stored."""

    schema_version: Literal["prony.job/1"] = "prony.job/1"
    point: Point
    deployment: Deployment
    load: LoadPlan
    repeat: int = Field(default=0, ge=0)
    time_limit_s: float = Field(default=3600.0, gt=0)
    config_file: str = ""
    config_digest: str = ""

    @property
    def key(self) -> str:
        """Digest of the resolved work. Not in it: names, paths, ports, time limits, priority."""
        return digest(
            {
                "schema": "prony.job/1",
                "deployment": self.deployment.key,
                "workload": self.point.workload.model_dump(mode="json"),
                "load": self.load.model_dump(mode="json"),
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
