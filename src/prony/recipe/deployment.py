"""A deployment: what is started, literally. Only `{port:NAME}`, `{model_dir}` and `{python}` are bound at start."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from prony.base.model import Frozen, digest
from prony.spec.load import MAX_SECONDS
from prony.spec.point import RoleName, Topology

ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
MAX_REPLICAS = 1024
MAX_FILE_CHARACTERS = 1_000_000

ProcessRole = RoleName | Literal["router"]
"""The roles of a topology, and the router that stands before them: it needs no devices."""
SpecMethod = Literal["draft_model", "dspark", "eagle", "eagle3", "mtp", "nextn", "ngram"]
AcceptanceMode = Literal["real", "golden"]


def fault_of_word(text: str) -> str | None:
    """Say why a text cannot be handed to a program (as an argument or in its environment), or None."""
    if "\0" in text:
        return "holds a NUL character"
    return "holds half of a surrogate pair" if any("\ud800" <= character <= "\udfff" for character in text) else None


def _word(text: str) -> str:
    fault = fault_of_word(text)
    if fault:
        raise ValueError(fault)
    return text


Word = Annotated[str, AfterValidator(_word)]
"""A text that can be handed to a program."""


class EnvVar(Frozen):
    """One environment variable of a role."""

    name: str = Field(pattern=ENV_NAME)
    value: Word


class ModelFile(Frozen):
    """A file of the model, with what it must be."""

    name: str = Field(min_length=1)
    size_bytes: int | None = Field(default=None, ge=0)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{64}$")


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
    timeout_s: float = Field(default=600.0, gt=0, le=MAX_SECONDS)


class RoleFile(Frozen):
    """A small file that a process reads at start; `{file:NAME}` in argv is its path."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    text: str = Field(max_length=MAX_FILE_CHARACTERS)


class SpecOption(Frozen):
    """One key that an engine's drafting has of its own."""

    name: str
    value: str | int | float | bool


class SpecDecode(Frozen):
    """Speculative decoding as it is asked for.

    steps: tokens drafted in a row; draft_tokens: tokens verified at once, the root included (steps + 1 for a chain);
    topk: branches; draft_sample, rejection: how drafts are drawn and judged, None as the engine does unasked. golden:
    acceptance is simulated at `acceptance_length` (tokens per verification step, the bonus token included), the value
    of a committed curve at `steps`; real: drafts are verified, acceptance is what comes out.
    """

    method: SpecMethod
    steps: int = Field(ge=1)
    draft_tokens: int = Field(ge=1)
    topk: int = Field(default=1, ge=1)
    draft_model: str | None = None
    draft_sample: str | None = None
    rejection: str | None = None
    options: tuple[SpecOption, ...] = ()
    acceptance: AcceptanceMode = "real"
    acceptance_length: float | None = None
    curve: str | None = None
    curve_digest: str | None = None

    @model_validator(mode="after")
    def _golden_has_a_curve(self) -> Self:
        asked = (self.acceptance_length, self.curve, self.curve_digest)
        if (self.acceptance == "golden") != all(part is not None for part in asked):
            raise ValueError("golden acceptance has a length, its curve and the curve's digest; real has none of them")
        return self


class Patch(Frozen):
    """A change to the engine's own files inside its image: what is not the released engine is told on the result."""

    file: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    reason: str
    upstream: str | None = None


class Role(Frozen):
    """One kind of process: literal argv and environment, the ports it listens on, when it is ready.

    gpus: devices of one replica. files: written before the process starts.
    """

    name: ProcessRole
    replicas: int = Field(default=1, ge=1, le=MAX_REPLICAS)
    argv: tuple[Word, ...] = Field(min_length=1)
    env: tuple[EnvVar, ...] = ()
    ports: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")], ...] = ("http",)
    gpus: int = Field(default=0, ge=0)
    ready: Probe = Probe()
    files: tuple[RoleFile, ...] = ()

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        if not self.argv[0]:
            raise ValueError("argv names no program")
        if len(set(self.ports)) < len(self.ports):
            raise ValueError(f"two ports have one name: {', '.join(self.ports)}")
        if self.ready.port not in self.ports:
            raise ValueError(f"ready.port is '{self.ready.port}', but the ports are: {', '.join(self.ports) or 'none'}")
        return self


class Origin(Frozen):
    """Where a leaf of the deployment was written: `roles.agg.args.ctx-size` at file:line."""

    leaf: str
    file: str
    line: int


class Deployment(Frozen):
    """All that is needed to serve one point, with nothing left to decide.

    chat_template: prompts must go through the model's template, as drafts of random tokens are accepted too often.
    """

    engine: str
    image: str
    image_digest: str | None = None
    model: ModelRef
    served_model: str
    topology: Topology
    roles: tuple[Role, ...] = Field(min_length=1)
    entry_role: ProcessRole = "agg"
    python: str | None = None
    tokenizer: Literal["llamacpp", "vllm", "none"] = "none"
    engine_version: str | None = None
    simulated: bool = False
    spec: SpecDecode | None = None
    chat_template: bool = False
    patches: tuple[Patch, ...] = ()
    recipe: str = ""
    origins: tuple[Origin, ...] = ()

    @model_validator(mode="after")
    def _requests_can_enter(self) -> Self:
        names = [role.name for role in self.roles]
        if len(set(names)) < len(names):
            raise ValueError(f"two roles have one name: {', '.join(names)}")
        if self.entry_role not in names:
            raise ValueError(f"entry_role is '{self.entry_role}', but the roles are: {', '.join(names)}")
        return self

    @property
    def key(self) -> str:
        """Digest of the resolved content; names and places are not in it (a model is its id, revision and files)."""
        plain = self.model_dump(
            mode="json", exclude={"origins": True, "recipe": True, "engine_version": True, "model": {"location"}}
        )
        return digest({"schema": "prony.deployment/1", **plain})
