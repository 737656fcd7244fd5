"""How a point is loaded: literal plans, and rules that give one for each point."""

from typing import Literal

from pydantic import Field

from prony.base.model import Frozen

LOAD_NAMES = ("conc", "isl", "osl")
"""What the expressions of load rules may name."""


class LoadPlan(Frozen):
    """A literal closed-loop load. Lengths in tokens, drawn uniformly from [int(range_ratio * L), L]."""

    endpoint: Literal["completions", "chat"] = "completions"
    isl: int = Field(gt=0)
    osl: int = Field(gt=0)
    range_ratio: float = Field(default=1.0, gt=0, le=1)
    concurrency: int = Field(gt=0)
    requests: int = Field(gt=0)
    warmups: int = Field(default=0, ge=0)
    seed: int = 0
    request_timeout_s: float = Field(default=600.0, gt=0)


class LoadRules(Frozen):
    """The load file beside a master config: integer expressions over the point (conc, isl, osl).

    The defaults are the reference's: 10 * conc requests, 2 * conc warm-ups, ratio 0.8, seed 0.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    endpoint: Literal["completions", "chat"] = "completions"
    requests: str = "${10 * conc}"
    warmups: str = "${2 * conc}"
    range_ratio: float = Field(default=0.8, gt=0, le=1, alias="range-ratio")
    seed: int = 0
    repeats: int = Field(default=1, ge=1)
    request_timeout_s: float = Field(default=600.0, gt=0, alias="request-timeout-s")
    time_limit_s: float = Field(default=3600.0, gt=0, alias="time-limit-s")
