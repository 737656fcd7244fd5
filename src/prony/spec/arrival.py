"""When the requests of a load are sent: as soon as a slot is free, at a rate that may change, or at given times."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from prony.base.model import Frozen

MAX_RATE = 1_000_000.0
MAX_STAGES = 1000
_LEAST_RATE = 1e-9
"""One request in 30 years: what is below is a mistake."""
_DAY_S = 86_400.0

Rate = Annotated[float, Field(ge=0, le=MAX_RATE)]
Span = Annotated[float, Field(ge=1e-6, le=30 * _DAY_S)]


class ClosedLoop(Frozen):
    """Each slot sends its next request when its last has ended.

    prefill_concurrency: at most so many requests wait for their first token, None: no such limit. ramp_s: the slots
    begin one after the other over this time.
    """

    kind: Literal["closed"] = "closed"
    prefill_concurrency: int | None = Field(default=None, gt=0, alias="prefill-concurrency")
    ramp_s: float = Field(default=0.0, ge=0, le=_DAY_S, alias="ramp-s")


class Stage(Frozen):
    """A span of an open loop: rate in req/s at its start and at its end (linear between; the same when not given).

    for_s: how long; only the last stage may leave it out, it lasts until the requests are used up.
    """

    rate: Rate
    to_rate: Rate | None = Field(default=None, alias="to-rate")
    for_s: Span | None = Field(default=None, alias="for-s")


class OpenLoop(Frozen):
    """Requests are due at times of their own, whatever the server does.

    process: gaps that are `constant`, exponential (`poisson`) or `gamma` with shape `burstiness` (1 is Poisson, below 1
    burstier), scaled by the rate of the stage. repeat: begin again with the first stage after the last (on-off bursts).
    At most `concurrency` of the plan are in flight; what is due beyond waits in the client, and the time from when it
    was due is measured beside the time from when it was sent.
    """

    kind: Literal["open"] = "open"
    process: Literal["constant", "poisson", "gamma"] = "poisson"
    burstiness: float = Field(default=1.0, ge=0.001, le=1000)
    stages: tuple[Stage, ...] = Field(min_length=1, max_length=MAX_STAGES)
    repeat: bool = False

    @model_validator(mode="after")
    def _ends_somewhere(self) -> Self:
        endless = [stage for stage in self.stages[:-1] if stage.for_s is None]
        last = self.stages[-1]
        if endless or (self.repeat and last.for_s is None):
            raise ValueError("every stage that another follows needs for-s")
        if last.for_s is None and last.to_rate not in (None, last.rate):
            raise ValueError("a stage with to-rate needs for-s")
        if max(rate for stage in self.stages for rate in (stage.rate, stage.to_rate or 0.0)) < _LEAST_RATE:
            raise ValueError("no stage has a rate above 0")
        if last.for_s is None and last.rate < _LEAST_RATE:
            raise ValueError("the last stage has rate 0 and no end")
        if self.burstiness != 1.0 and self.process != "gamma":
            raise ValueError("burstiness is of process: gamma")
        return self


class TimedArrivals(Frozen):
    """Requests are due at the times that the workload's file states (a request log), from its first on.

    speed: 2 replays in half the time. spread: what becomes of several requests with one time stamp (a log that counts
    in whole seconds): `none` sends them at once, `even` spreads them evenly over bucket_s, `random` uniformly.
    """

    kind: Literal["timed"] = "timed"
    speed: float = Field(default=1.0, gt=0, le=1e6)
    spread: Literal["none", "even", "random"] = "none"
    bucket_s: float = Field(default=1.0, gt=0, le=_DAY_S, alias="bucket-s")


Arrival = Annotated[ClosedLoop | OpenLoop | TimedArrivals, Field(discriminator="kind")]
