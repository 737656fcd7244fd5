"""How a point is loaded: literal plans, and rules that give one for each point."""

from typing import Literal, Self

from pydantic import Field, model_validator

from prony.base.model import Frozen

LOAD_NAMES = ("conc", "isl", "osl")
"""What the expressions of load rules may name."""

MAX_REQUESTS = 10_000_000
MAX_CONCURRENCY = 65_536
MAX_LENGTH = 10_000_000
MAX_TOKENS = 1_000_000_000
"""Of all requests of a load, in and out: the client holds about 6 bytes per prompt token before it starts."""
MAX_SECONDS = 30 * 86_400.0
MAX_REPEATS = 1000


class LoadPlan(Frozen):
    """A literal closed-loop load. Lengths in tokens, drawn uniformly from [int(range_ratio * L), L]."""

    endpoint: Literal["completions", "chat"] = "completions"
    isl: int = Field(gt=0, le=MAX_LENGTH)
    osl: int = Field(gt=0, le=MAX_LENGTH)
    range_ratio: float = Field(default=1.0, gt=0, le=1)
    concurrency: int = Field(gt=0, le=MAX_CONCURRENCY)
    requests: int = Field(gt=0, le=MAX_REQUESTS)
    warmups: int = Field(default=0, ge=0, le=MAX_REQUESTS)
    seed: int = Field(default=0, ge=0, lt=2**63)
    request_timeout_s: float = Field(default=600.0, gt=0, le=MAX_SECONDS)

    @model_validator(mode="after")
    def _fits_into_memory(self) -> Self:
        tokens = (self.requests + self.warmups) * (self.isl + self.osl)
        if tokens > MAX_TOKENS:
            raise ValueError(f"{tokens:,} tokens in all requests and warm-ups; at most {MAX_TOKENS:,}")
        return self


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
    repeats: int = Field(default=1, ge=1, le=MAX_REPEATS)
    request_timeout_s: float = Field(default=600.0, gt=0, le=MAX_SECONDS, alias="request-timeout-s")
    time_limit_s: float = Field(default=3600.0, gt=0, le=MAX_SECONDS, alias="time-limit-s")
