"""Golden acceptance curves: how many tokens a verification step yields for a model and its drafter, by draft length."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from prony.base.errors import ConfigError
from prony.base.model import Frozen, digest
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml

Thinking = Literal["on", "off"]


class Cell(Frozen):
    """What was counted for one draft length: verification steps, accepted tokens at each position, prompts.

    length: tokens per verification step, the bonus token included. ci95: its [low, high], by bootstrap over prompts.
    """

    thinking: Thinking
    steps: int = Field(ge=1)
    drafts: int = Field(ge=1)
    accepted_at: tuple[int, ...]
    prompts: int = Field(ge=1)
    ci95: tuple[float, float] | None = None

    @property
    def length(self) -> float:
        """1 + accepted / drafts."""
        return 1 + sum(self.accepted_at) / self.drafts


def _whole_keys(value: Any) -> Any:
    """Take draft lengths as YAML gives them: texts of whole numbers."""
    if isinstance(value, dict):
        return {int(key) if isinstance(key, str) and key.isdigit() else key: item for key, item in value.items()}
    return value


Lengths = Annotated[dict[int, float], BeforeValidator(_whole_keys)]


class Curve(Frozen):
    """One curve. models: globs over checkpoint ids, letter case aside; a drafter `self` is the checkpoint's own head.

    thinking_on, thinking_off: draft length → acceptance length, the bonus token included. source: where the numbers are
    from. engine, dataset, sampling: how they were measured. raw: the counts, where they are known.
    """

    schema_version: Literal["golden-al/1"] = Field(alias="schema")
    name: str = Field(min_length=1)
    models: tuple[str, ...] = Field(min_length=1)
    method: str
    drafter: str = "self"
    draft_sample: str | None = None
    rejection: str | None = None
    measured_on: str
    engine: str
    dataset: str
    sampling: str
    source: str
    thinking_on: Lengths = Field(default_factory=dict)
    thinking_off: Lengths | None = None
    raw: tuple[Cell, ...] = ()
    file: str = ""

    @model_validator(mode="after")
    def _lengths_are_possible(self) -> Self:
        for lengths in (self.thinking_on, self.thinking_off or {}):
            for steps, length in lengths.items():
                if steps < 1 or not 1 <= length <= steps + 1:
                    raise ValueError(f"{steps} drafted tokens cannot yield {length} a step; from 1 to {steps + 1}")
        return self

    @property
    def digest(self) -> str:
        """Of what it says; where it lies and what it is called are not in it."""
        return digest(self.model_dump(mode="json", exclude={"file", "name", "source"}))

    def serves(self, model: str) -> bool:
        """Say whether a checkpoint's acceptance is this curve's."""
        return any(fnmatchcase(model.lower(), glob.lower()) for glob in self.models)

    def length(self, steps: int, thinking: Thinking) -> float:
        """Return the acceptance length at a draft length; nothing is guessed: one not measured raises ConfigError."""
        lengths = self.thinking_on if thinking == "on" else self.thinking_off
        if lengths is None or steps not in lengths:
            known = ", ".join(map(str, sorted(lengths or {}))) or f"none with thinking {thinking}"
            raise ConfigError(
                f"curve {self.name} has no acceptance length at {steps} drafted tokens with thinking {thinking}",
                allowed=f"spec.steps: {known}",
                fix="draft as many tokens as were measured, or collect the curve there: prony acceptance collect",
            )
        return lengths[steps]


def falls(curve: Curve) -> tuple[str, ...]:
    """Say where a curve falls though more tokens are drafted, which acceptance cannot do: noise of the measurement."""
    return tuple(
        f"thinking {thinking}: falls from {lengths[first]} at {first} to {lengths[second]} at {second} drafted tokens"
        for thinking, lengths in (("on", curve.thinking_on), ("off", curve.thinking_off or {}))
        for first, second in pairwise(sorted(lengths))
        if lengths[second] < lengths[first]
    )


def read_curve(document: YamlMap) -> Curve:
    """Check the YAML of a curve. Raises ConfigError with file:line."""
    return validate(Curve, document, "acceptance curve").model_copy(update={"file": document.file})


def load_curves(folder: Path) -> tuple[Curve, ...]:
    """Read the curves of a folder, by name. Raises ConfigError with file:line, also for two of one name."""
    found: dict[str, Curve] = {}
    for path in sorted(folder.glob("*.yaml")):
        curve = read_curve(load_yaml(path))
        if curve.name in found:
            raise ConfigError(
                f"{path}: curve '{curve.name}' is also in {found[curve.name].file}", fix="rename one of them"
            )
        found[curve.name] = curve
    return tuple(found.values())


@cache
def shipped_curves() -> tuple[Curve, ...]:
    """Return the curves that come with Prony."""
    return load_curves(Path(str(files("prony.facts") / "acceptance")))


def matching(
    curves: Iterable[Curve],
    model: str,
    method: str,
    drafter: str = "self",
    draft_sample: str | None = None,
    rejection: str | None = None,
) -> tuple[Curve, ...]:
    """Return the curves of a checkpoint that was drafted for so. None: as the engine does unasked."""
    asked = (method, drafter, draft_sample, rejection)
    return tuple(
        curve
        for curve in curves
        if curve.serves(model) and (curve.method, curve.drafter, curve.draft_sample, curve.rejection) == asked
    )
