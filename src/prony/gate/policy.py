"""The policy of deprecated models, scenarios and arms, as data."""

from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict

from prony.base.model import Frozen
from prony.base.validate import validate
from prony.base.yamldoc import load_yaml, parse_yaml
from prony.gate.document import Key, Search
from prony.spec.point import SpecDecoding

LENGTHS = {(1024, 1024): "1k1k", (8192, 1024): "8k1k", (1024, 8192): "1k8k"}


class PolicyRow(Frozen):
    """One deprecation: what it covers (an absent field covers all), whether it is carried out, since when, by whom."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    models: tuple[str, ...] | None = None
    scenarios: tuple[str, ...] | None = None
    precisions: tuple[str, ...] | None = None
    spec_decoding: SpecDecoding | None = None
    state: Literal["planned", "enacted"]
    since: str
    source: str
    instead: str

    def covers(self, key: Key, search: Search) -> bool:
        """Whether a search-space entry is deprecated by this row."""
        pairs = (
            (self.models, key.entry.model_prefix),
            (self.scenarios, scenario_name(search)),
            (self.precisions, key.entry.precision),
            (self.spec_decoding and (self.spec_decoding,), search.entry.spec_decoding),
        )
        return all(allowed is None or value in allowed for allowed, value in pairs)


class Policy(Frozen):
    """All rows, the first that covers an entry counts."""

    schema_: Literal[1]
    rows: tuple[PolicyRow, ...]

    model_config = ConfigDict(alias_generator=lambda name: name.rstrip("_"))


def load_policy(path: Path | None = None) -> Policy:
    """Read a policy file, or the one that comes with Prony. Raises ConfigError with file:line."""
    if path is not None:
        return validate(Policy, load_yaml(path), "policy")
    text = files("prony.gate").joinpath("model-policy.yaml").read_text(encoding="utf-8")
    return validate(Policy, parse_yaml(text, "model-policy.yaml"), "policy")


def scenario_name(search: Search) -> str:
    """Return 8k1k, 1k1k, 1k8k, agentic-coding, or the lengths."""
    if search.isl is None or search.osl is None:
        return search.scenario
    return LENGTHS.get((search.isl, search.osl), f"{search.isl}/{search.osl}")
