"""A log as a client sees it that looks at chunks: which kinds are a token to it, and which end a request."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prony.measure.eventlog import EventLog, Fault, Ints, Kind
from prony.measure.statistics import Floats

TOKENS = (Kind.CONTENT, Kind.REASONING, Kind.TOOL)
CHOICES = (Kind.ROLE, *TOKENS)
"""Chunks that have `choices`, empty or not."""


@dataclass(frozen=True)
class Streams:
    """One entry per request that has a chunk, s from its sending; gaps: between its chunks, s, of all requests.

    end: of the HTTP answer. output_tokens, input_tokens: as the server counted them, -1: it did not say (input: as
    planned). first_tokens: of the first chunk, -1: not told. duration_s: from the first send to the last end.
    """

    first: Floats
    last: Floats
    end: Floats
    gaps: Floats
    input_tokens: Ints
    output_tokens: Ints
    first_tokens: Ints
    duration_s: float

    def __len__(self) -> int:
        return len(self.first)

    @property
    def tokens_out(self) -> int | None:
        """Output tokens of all requests, None when one is unknown."""
        return None if (self.output_tokens < 0).any() else int(self.output_tokens.sum())

    @property
    def tokens_in(self) -> int | None:
        """Input tokens of all requests, None when one is unknown."""
        return None if (self.input_tokens < 0).any() else int(self.input_tokens.sum())

    @property
    def per_token(self) -> Floats:
        """(last − first) / (output tokens − 1) of each request with more than one token."""
        some = self.output_tokens > 1
        return np.asarray((self.last - self.first)[some] / (self.output_tokens[some] - 1), dtype=np.float64)


def streams(log: EventLog, counting: Iterable[Kind], ending: Iterable[Kind] | None = None) -> Streams:
    """Look at a log's completed requests by the chunks that a tool counts; `ending`: those that move the end."""
    requests, events = log.requests, log.events
    good = (requests.fault == Fault.OK) & (requests.sent >= 0)
    where = np.flatnonzero(_of_kinds(counting)[events.kind] & good[events.request])
    owner, at = events.request[where], events.at[where]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    seen = owner[starts]
    last = np.zeros(len(requests), dtype=np.int64)
    closing = np.flatnonzero(_of_kinds(ending or counting)[events.kind])
    np.maximum.at(last, events.request[closing], events.at[closing])
    sent = requests.sent[seen]
    used = requests.end[requests.end >= 0]
    return Streams(
        first=(at[starts] - sent) / 1e9,
        last=(last[seen] - sent) / 1e9,
        end=(requests.end[seen] - sent) / 1e9,
        gaps=(np.diff(at) / 1e9)[owner[1:] == owner[:-1]],
        input_tokens=np.where(requests.input_counted >= 0, requests.input_counted, requests.input_planned)[seen],
        output_tokens=requests.output_counted[seen],
        first_tokens=events.tokens[where[starts]],
        duration_s=float(used.max() - requests.sent[requests.sent >= 0].min()) / 1e9 if len(used) else 0.0,
    )


def _of_kinds(kinds: Iterable[Kind]) -> NDArray[np.bool_]:
    return np.isin(np.arange(len(Kind)), list(kinds))
