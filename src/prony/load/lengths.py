"""How many tokens: lengths drawn from a distribution."""

import numpy as np
from numpy.typing import NDArray

from prony.base.errors import ConfigError
from prony.spec.workload import EmpiricalLengths, Lengths, LognormalLengths, NormalLengths, UniformLengths

Ints = NDArray[np.int64]
_ROUNDS = 200


def uniform(limit: int, ratio: float) -> UniformLengths:
    """Return the plan's own distribution: whole numbers of [int(ratio * limit), limit], at least 1."""
    return UniformLengths(least=max(1, int(ratio * limit)), most=limit)


def shortest(asked: Lengths) -> int:
    """Return the least length that can be drawn."""
    return min(asked.lengths) if isinstance(asked, EmpiricalLengths) else asked.least


def draw_lengths(asked: Lengths, count: int, rng: np.random.Generator) -> Ints:
    """Draw lengths in tokens. Raises ConfigError when hardly any draw falls between the bounds."""
    if isinstance(asked, UniformLengths):
        return rng.integers(asked.least, asked.most + 1, size=count, dtype=np.int64)
    if isinstance(asked, EmpiricalLengths):
        weights = np.asarray(asked.weights or [1.0] * len(asked.lengths))
        return rng.choice(np.asarray(asked.lengths, dtype=np.int64), size=count, p=weights / weights.sum())
    return _bounded(asked, count, rng)


def _bounded(asked: NormalLengths | LognormalLengths, count: int, rng: np.random.Generator) -> Ints:
    """Draw again what falls outside the bounds."""
    found = np.empty(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        drawn = _draw(asked, count, rng)
        found = np.concatenate([found, drawn[(drawn >= asked.least) & (drawn <= asked.most)]])
        if len(found) >= count:
            return found[:count]
    raise ConfigError(
        f"lengths: a {asked.kind} distribution that is almost never between {asked.least} and {asked.most} tokens",
        fix="widen least and most, or move the distribution between them",
    )


def _draw(asked: NormalLengths | LognormalLengths, count: int, rng: np.random.Generator) -> Ints:
    if isinstance(asked, NormalLengths):
        values = rng.normal(asked.mean, asked.std, size=count)
    else:
        values = rng.lognormal(np.log(asked.median), asked.sigma, size=count)
    return np.rint(np.clip(values, 0, 2**62)).astype(np.int64)
