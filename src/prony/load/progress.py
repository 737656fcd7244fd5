"""Progress of a running load, for the live view."""

import contextlib
from pathlib import Path
from typing import Literal

from prony.base.model import Frozen, canonical_json


class Progress(Frozen):
    """What a running load has done so far.

    output_tokens: of the completed requests. ttft_p50_s, ttft_p99_s: of the last 2,000 completed requests, None: none
    yet. The rate of tokens and the time left follow from these and elapsed_s.
    """

    phase: Literal["starting", "warming", "measuring", "finishing"]
    requests_total: int = 0
    requests_done: int = 0
    requests_failed: int = 0
    in_flight: int = 0
    output_tokens: int = 0
    elapsed_s: float = 0.0
    ttft_p50_s: float | None = None
    ttft_p99_s: float | None = None

    @property
    def tokens_per_s(self) -> float | None:
        """Output tokens per second so far."""
        return self.output_tokens / self.elapsed_s if self.elapsed_s > 0 and self.output_tokens else None

    @property
    def left_s(self) -> float | None:
        """How long the rest takes at the pace so far."""
        if not self.requests_done or self.elapsed_s <= 0:
            return None
        return self.elapsed_s * (self.requests_total - self.requests_done) / self.requests_done


def write_progress(path: Path, progress: Progress) -> None:
    """Replace the progress file by rename, unsynced. A full disk is left for the event log to report."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(canonical_json(progress))
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
