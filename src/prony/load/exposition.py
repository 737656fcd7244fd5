"""Counters of a server in the Prometheus text format."""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

_LABELS = r'\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}'
_SAMPLE = re.compile(rf"\s*([a-zA-Z_:][a-zA-Z0-9_:]*)\s*({_LABELS})?\s*([^\s{{}}]+)(?:\s.*)?$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')


class Sample(NamedTuple):
    """One line: a name, its labels (escapes as written), a finite value."""

    name: str
    labels: dict[str, str]
    value: float


def samples(text: str) -> Iterator[Sample]:
    """Read every line that is a sample with a finite value; comments, damaged lines and NaN are passed over."""
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        if math.isfinite(value):
            yield Sample(match[1], dict(_LABEL.findall(match[2] or "")), value)
