"""Progress of a running load, for the live view."""

import contextlib
from pathlib import Path
from typing import Literal

from prony.base.model import Frozen, canonical_json


class Progress(Frozen):
    """What a running load has done so far.

    output_tokens: tokens asked of the completed requests (events are decoded only after the load).
    """

    phase: Literal["starting", "warming", "measuring", "finishing"]
    requests_total: int = 0
    requests_done: int = 0
    requests_failed: int = 0
    output_tokens: int = 0
    elapsed_s: float = 0.0


def write_progress(path: Path, progress: Progress) -> None:
    """Replace the progress file by rename, unsynced. A full disk is left for the event log to report."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(canonical_json(progress))
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
