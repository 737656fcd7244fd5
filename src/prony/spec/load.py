"""How a point is loaded: literal plans, and rules that give one for each point."""

from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from prony.base.model import Frozen
from prony.spec.arrival import Arrival, ClosedLoop, TimedArrivals
from prony.spec.workload import MAX_LENGTH as MAX_LENGTH
from prony.spec.workload import FileWorkload, MultiTurn, RandomTokens, Workload

LOAD_NAMES = ("conc", "isl", "osl")
"""What the expressions of load rules may name."""

MAX_REQUESTS = 10_000_000
MAX_CONCURRENCY = 65_536
MAX_TOKENS = 1_000_000_000
"""Of all requests of a load, in and out: the client holds about 6 bytes per prompt token before it starts."""
MAX_SECONDS = 30 * 86_400.0
MAX_REPEATS = 1000


Endpoint = Literal["completions", "chat"]


class Clash(NamedTuple):
    """Two parts of a load that exclude each other: the field that is to blame, why, and what to do."""

    field: Literal["arrival", "workload"]
    reason: str
    fix: str


def clash_of(endpoint: str | None, stream: bool, arrival: Arrival, workload: Workload) -> Clash | None:
    """Return what does not go together, if anything."""
    of_log = isinstance(workload, FileWorkload) and workload.kind == "request-log"
    if isinstance(arrival, TimedArrivals) and not of_log:
        reason = "arrival 'timed' needs the times of a workload 'request-log'"
        return Clash("arrival", reason, "choose arrival 'closed' or 'open', or replay a request log")
    if isinstance(workload, MultiTurn) and endpoint == "completions":
        reason = "workload 'multi-turn' needs endpoint 'chat': only messages carry a conversation"
        return Clash("workload", reason, "set endpoint: chat")
    if isinstance(arrival, ClosedLoop) and arrival.prefill_concurrency is not None and not stream:
        reason = "prefill-concurrency needs stream: a whole answer does not show its first token"
        return Clash("arrival", reason, "leave out prefill-concurrency, or ask for streams")
    return None


class LoadPlan(Frozen):
    """A literal load. isl, osl in tokens; a workload without lengths of its own draws uniformly from
    [int(range_ratio * L), L].

    concurrency: requests in flight, the most of them in an open loop. stream: False asks for whole answers, which have
    no TTFT. isl and osl may only be left out where the workload is a file, which has lengths of its own.
    """

    endpoint: Literal["completions", "chat"] = "completions"
    isl: int | None = Field(default=None, gt=0, le=MAX_LENGTH)
    osl: int | None = Field(default=None, gt=0, le=MAX_LENGTH)
    range_ratio: float = Field(default=1.0, gt=0, le=1)
    concurrency: int = Field(gt=0, le=MAX_CONCURRENCY)
    requests: int = Field(gt=0, le=MAX_REQUESTS)
    warmups: int = Field(default=0, ge=0, le=MAX_REQUESTS)
    seed: int = Field(default=0, ge=0, lt=2**63)
    request_timeout_s: float = Field(default=600.0, gt=0, le=MAX_SECONDS)
    stream: bool = True
    arrival: Arrival = Field(default_factory=ClosedLoop)
    workload: Workload = Field(default_factory=RandomTokens)

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        of_file = isinstance(self.workload, FileWorkload)
        if not of_file and (self.isl is None or self.osl is None):
            raise ValueError("isl and osl are needed: only a workload from a file has lengths of its own")
        if (clash := clash_of(self.endpoint, self.stream, self.arrival, self.workload)) is not None:
            raise ValueError(clash.reason)
        tokens = (self.requests + self.warmups) * ((self.isl or 0) + (self.osl or 0))
        if tokens > MAX_TOKENS:
            raise ValueError(f"{tokens:,} tokens in all requests and warm-ups; at most {MAX_TOKENS:,}")
        return self


class LoadRules(Frozen):
    """The load file beside a master config: integer expressions over the point (conc, isl, osl).

    The defaults are the reference's: 10 * conc requests, 2 * conc warm-ups, ratio 0.8, seed 0; a closed loop of random
    tokens. endpoint: unsaid, chat where a conversation or a drafter needs it, else completions.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    endpoint: Literal["completions", "chat"] | None = None
    requests: str = "${10 * conc}"
    warmups: str = "${2 * conc}"
    range_ratio: float = Field(default=0.8, gt=0, le=1, alias="range-ratio")
    seed: int = 0
    repeats: int = Field(default=1, ge=1, le=MAX_REPEATS)
    request_timeout_s: float = Field(default=600.0, gt=0, le=MAX_SECONDS, alias="request-timeout-s")
    time_limit_s: float = Field(default=3600.0, gt=0, le=MAX_SECONDS, alias="time-limit-s")
    stream: bool = True
    arrival: Arrival = Field(default_factory=ClosedLoop)
    workload: Workload = Field(default_factory=RandomTokens)
