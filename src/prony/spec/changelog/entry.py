"""Entries of a change log and what is wrong with one."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, StrictStr, ValidationError, model_validator

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Where
from prony.base.model import Frozen

Scenario = Literal["fixed-seq-len", "agentic-coding"]
SCENARIOS: tuple[Scenario, ...] = ("fixed-seq-len", "agentic-coding")


def _in_order(value: object) -> object:
    """Refuse a set where a list belongs: it would be taken, in any order."""
    if isinstance(value, set | frozenset):
        raise ValueError("input should be a valid list")
    return value


_Ordered = BeforeValidator(_in_order)


class ChangelogEntry(Frozen):
    """What one entry asks for; fields are written with hyphens, underscores are read too."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    config_keys: Annotated[tuple[StrictStr, ...], Field(min_length=1), _Ordered]
    description: Annotated[tuple[StrictStr, ...], Field(min_length=1), _Ordered]
    pr_link: StrictStr
    evals_only: StrictBool = False
    all_evals: StrictBool = False
    append_only: StrictBool = False
    eval_min_prefill_ep: Annotated[int, Field(ge=1, strict=True)] | None = None
    scenario_type: Annotated[tuple[Scenario, ...], Field(min_length=1), _Ordered] | None = None

    @model_validator(mode="after")
    def _append_only_runs_no_evals(self) -> Self:
        if self.append_only and (self.evals_only or self.all_evals or self.eval_min_prefill_ep is not None):
            raise ValueError("'append-only' excludes evals-only, all-evals and eval-min-prefill-ep")
        return self

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios that are asked for, in the one order that selection knows."""
        wanted = self.scenario_type or SCENARIOS
        return tuple(name for name in SCENARIOS if name in wanted)


FIELDS = tuple(name.replace("_", "-") for name in ChangelogEntry.model_fields)


MEND = "run with --fix"
"""How findings advise to mend; a command without --fix puts one that has it in its place."""


class RefusedError(ConfigError):
    """A version that the strict rules refuse; rule: that of the finding that it tells."""

    def __init__(self, found: Finding) -> None:
        self.found = found
        place = f"{found.where}: " if found.where else ""
        super().__init__(f"{place}{found.message}", allowed=found.allowed, fix=found.fix)
        self.rule = found.rule


def fault(rule: str, where: Where, message: str, *, allowed: str = "", fix: str = "", evidence: str = "") -> Finding:
    """Return a finding of severity error."""
    return Finding(
        rule=f"changelog-{rule}",
        severity="error",
        message=message,
        where=where,
        allowed=allowed,
        fix=fix,
        evidence=evidence,
    )


@dataclass(frozen=True)
class Entry:
    """One entry, where it stands, and what two entries are compared by.

    signature: canonical JSON of the fields as written, without the link. start, content_end: bytes from the entry's
    first line to the end of its last line that is not blank.
    """

    asked: ChangelogEntry
    signature: str
    link: str
    line: int
    lines: Mapping[str, int]
    start: int
    content_end: int

    def same_as(self, other: "Entry") -> bool:
        """Whether both say the same, link included."""
        return self.link == other.link and self.signature == other.signature


def signature_of(values: Mapping[str, Any]) -> str:
    """Return the identity of an entry without its link."""
    plain = {name: value for name, value in values.items() if name != "pr-link"}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def explain(error: ValidationError, number: int, place: Where, item_line: int) -> Finding:
    """Say in one finding what makes entry `number` invalid; place is where the entry stands."""
    details = error.errors(include_url=False, include_input=False)
    first = min(details, key=lambda detail: detail["type"] != "extra_forbidden")
    name = str(first["loc"][0]) if first["loc"] else ""
    where = Where(file=place.file, line=item_line or place.line)
    if first["type"] == "extra_forbidden":
        guess = difflib.get_close_matches(name, FIELDS, n=1)
        fix = f"write '{guess[0]}'" if guess else f"remove '{name}'"
        message = f"entry {number}: '{name}' is not a field of an entry"
        return fault("unknown-field", where, message, allowed=", ".join(FIELDS), fix=fix)
    if first["type"] == "missing":
        message = f"entry {number}: '{name}' is missing"
        return fault("missing-field", where, message, allowed=", ".join(FIELDS), fix=f"add '{name}: …'")
    text = first["msg"].removeprefix("Value error, ").replace("tuple", "list").replace("dictionary", "mapping")
    subject = f"'{name}': " if name else ""
    message = f"entry {number}: {subject}{text[:1].lower()}{text[1:]}"
    shape = _SHAPES.get(name, ", ".join(FIELDS))
    return fault("field", where, message, allowed=shape, fix=_FIXES.get(name, f"write {shape}"))


_SHAPES = {
    "config-keys": "a list of one or more config keys, '*' as wildcard",
    "description": "a list of one or more sentences",
    "pr-link": "the address of the pull request, or the placeholder",
    "scenario-type": f"a list of {' and '.join(SCENARIOS)}",
    "eval-min-prefill-ep": "a whole number from 1",
    "evals-only": "true, false",
    "all-evals": "true, false",
    "append-only": "true, false",
}
_FIXES = {
    "config-keys": "write each key on its own line: '    - KEY'",
    "description": "write each sentence on its own line: '    - \"…\"'",
    "scenario-type": "keep one or both of the allowed names, or remove the field for both",
    "": "keep 'append-only' or the eval fields, not both",
}
