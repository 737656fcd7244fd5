"""A deployment: what is started, literally. Only `{port:NAME}`, `{model_dir}` and `{python}` are bound at start."""

from typing import Literal

from pydantic import Field

from prony.base.model import Frozen, digest
from prony.spec.point import RoleName, Topology


class EnvVar(Frozen):
    """One environment variable of a role."""

    name: str
    value: str


class ModelFile(Frozen):
    """A file of the model, with what it must be."""

    name: str
    size_bytes: int | None = None
    sha256: str | None = None


class ModelRef(Frozen):
    """Which model, and where its files are.

    location: `python-package:NAME` (files in an installed package), `path:/DIR`, or `none` (the engine needs no files).
    """

    id: str
    revision: str | None = None
    location: str = "none"
    files: tuple[ModelFile, ...] = ()


class Probe(Frozen):
    """When a role is ready: GET path on a port answers 200 within the time."""

    port: str = "http"
    path: str = "/health"
    timeout_s: float = Field(default=600.0, gt=0)


class Role(Frozen):
    """One kind of process: literal argv and environment, the ports it listens on, when it is ready."""

    name: RoleName
    replicas: int = 1
    argv: tuple[str, ...]
    env: tuple[EnvVar, ...] = ()
    ports: tuple[str, ...] = ("http",)
    gpus: int = 0
    ready: Probe = Probe()


class Origin(Frozen):
    """Where a leaf of the deployment was written: `roles.agg.args.ctx-size` at file:line."""

    leaf: str
    file: str
    line: int


class Deployment(Frozen):
    """All that is needed to serve one point, with nothing left to decide."""

    engine: str
    image: str
    image_digest: str | None = None
    model: ModelRef
    served_model: str
    topology: Topology
    roles: tuple[Role, ...]
    entry_role: RoleName = "agg"
    python: str | None = None
    tokenizer: Literal["llamacpp", "vllm", "none"] = "none"
    engine_version: str | None = None
    simulated: bool = False
    recipe: str = ""
    origins: tuple[Origin, ...] = ()

    @property
    def key(self) -> str:
        """Digest of the resolved content; names and places are not in it (a model is its id, revision and files)."""
        plain = self.model_dump(
            mode="json", exclude={"origins": True, "recipe": True, "engine_version": True, "model": {"location"}}
        )
        return digest({"schema": "prony.deployment/1", **plain})
