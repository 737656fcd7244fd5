"""What the requests of a load ask: random tokens, conversations, or requests that a file holds."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from prony.base.model import Frozen

MAX_LENGTH = 10_000_000
"""Tokens of one prompt or one answer."""
MAX_GROUPS = 100_000

Tokens = Annotated[int, Field(gt=0, le=MAX_LENGTH)]


class UniformLengths(Frozen):
    """Whole tokens from least to most, each as likely."""

    kind: Literal["uniform"] = "uniform"
    least: Tokens
    most: Tokens

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least > self.most:
            raise ValueError("least is above most")
        return self


class NormalLengths(Frozen):
    """Rounded normal, drawn again outside [least, most]."""

    kind: Literal["normal"] = "normal"
    mean: float = Field(gt=0, le=MAX_LENGTH)
    std: float = Field(ge=0, le=MAX_LENGTH)
    least: Tokens = 1
    most: Tokens = MAX_LENGTH


class LognormalLengths(Frozen):
    """Rounded lognormal: median in tokens, sigma of the logarithm, drawn again outside [least, most]."""

    kind: Literal["lognormal"] = "lognormal"
    median: float = Field(gt=0, le=MAX_LENGTH)
    sigma: float = Field(ge=0, le=10)
    least: Tokens = 1
    most: Tokens = MAX_LENGTH


class EmpiricalLengths(Frozen):
    """Drawn from these lengths, with these weights (equal when not given)."""

    kind: Literal["empirical"] = "empirical"
    lengths: tuple[Tokens, ...] = Field(min_length=1, max_length=1_000_000)
    weights: tuple[Annotated[float, Field(ge=0)], ...] = ()

    @model_validator(mode="after")
    def _one_weight_each(self) -> Self:
        if self.weights and (len(self.weights) != len(self.lengths) or sum(self.weights) <= 0):
            raise ValueError("weights: one for each length, not all 0")
        return self


Lengths = Annotated[UniformLengths | NormalLengths | LognormalLengths | EmpiricalLengths, Field(discriminator="kind")]


class SharedPrefix(Frozen):
    """Prompts begin with one of `groups` fixed prefixes of `length` tokens; group k is drawn with weight k^-zipf."""

    groups: int = Field(gt=0, le=MAX_GROUPS)
    length: Tokens
    zipf: float = Field(default=0.0, ge=0, le=10)


class RandomTokens(Frozen):
    """Prompts of random tokens, all different. Lengths: those of the plan (isl, osl, range ratio) where not given.

    prefix: its tokens are part of the input length.
    """

    kind: Literal["random"] = "random"
    input: Lengths | None = None
    output: Lengths | None = None
    prefix: SharedPrefix | None = None


class MultiTurn(Frozen):
    """Conversations of `turns` requests; each carries all that was said before, answers included, and `isl` new tokens.

    think_s: mean time between an answer and the next turn (exponential), 0: at once. The plan's concurrency is that of
    conversations, its requests are turns.
    """

    kind: Literal["multi-turn"] = "multi-turn"
    turns: int = Field(gt=0, le=10_000)
    think_s: float = Field(default=0.0, ge=0, le=3600, alias="think-s")


class FileWorkload(Frozen):
    """Requests of a file.

    `sharegpt`: JSON list of {"conversations": [{"from", "value"}, …]}, the first question and the length of its answer.
    `request-log`: JSON lines, each the body of an OpenAI request, or {"body": …, "timestamp": seconds}.
    sha256: of the file, filled in when the load is planned; a file that has changed since is refused.
    """

    kind: Literal["sharegpt", "request-log"]
    file: str = Field(min_length=1)
    sha256: str = Field(default="", pattern="^([0-9a-f]{64})?$")


Workload = Annotated[RandomTokens | MultiTurn | FileWorkload, Field(discriminator="kind")]
