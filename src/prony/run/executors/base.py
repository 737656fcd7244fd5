"""What the sweep controller needs from anything that can run `prony job run DIR…` somewhere."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from prony.base.errors import LaunchError
from prony.base.model import Frozen

Handle = str
"""An opaque name that outlives the controller: `local:pid@boot+starttime`."""

Phase = Literal["queued", "running", "exited", "cancelled", "preempted", "absent"]


class ExecutorUnavailable(LaunchError):  # noqa: N818 - a state of the world; nothing failed
    """The executor cannot be asked now; nothing may be concluded from that."""


class State(Frozen):
    """What an executor knows of a submission. The exit records in the job folders outrank it."""

    phase: Phase
    exit_code: int | None = None
    reason: str = ""


class Executor(Protocol):
    """Runs the jobs of a launch somewhere, exactly once per (launch, attempt)."""

    slots: int
    """How many launches may be in flight."""

    def submit(self, launch: str, folders: Sequence[Path], attempt: int) -> Handle:
        """Find or start the supervisor of this attempt. Raises LaunchError, ExecutorUnavailable."""
        ...

    def poll(self, handles: Collection[Handle]) -> Mapping[Handle, State]:
        """Tell the state of all handles in one call. Raises ExecutorUnavailable."""
        ...

    def cancel(self, handle: Handle, grace_s: float = 30.0) -> None:
        """Ask to stop; 0 does not ask. Returns when accepted: `poll` says when it is done. May be called again."""
        ...
