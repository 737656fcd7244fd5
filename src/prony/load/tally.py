"""What a running load has done so far, for the live view."""

from collections import deque

from prony.load.answer import TOKEN_KINDS
from prony.load.exchange import Exchange
from prony.measure.eventlog import Fault

_RECENT = 2000


class Tally:
    """Counts of ended requests. output_tokens: as the server counted them; ttfts_ns: of the last completed ones."""

    def __init__(self) -> None:
        self.done = self.failed = self.output_tokens = self.reads = 0
        self.ttfts_ns: deque[int] = deque(maxlen=_RECENT)

    def add(self, exchange: Exchange) -> None:
        """Count one exchange that has ended."""
        self.done += 1
        answer = exchange.answer
        self.reads += answer.reads
        if exchange.fault is not Fault.OK:
            self.failed += 1
            return
        self.output_tokens += answer.usage.completion if answer.usage.completion >= 0 else len(answer.at)
        for at, kind in zip(answer.at, answer.kind, strict=True):
            if kind in TOKEN_KINDS:
                self.ttfts_ns.append(at - exchange.sent)
                return

    def ttft_s(self, quantile: float) -> float | None:
        """Return a quantile of the recent times to first token, or None."""
        ordered = sorted(self.ttfts_ns)
        return ordered[int(quantile * (len(ordered) - 1))] / 1e9 if ordered else None
