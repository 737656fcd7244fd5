"""Who runs a job folder: one claim file per attempt; what an earlier attempt left is moved aside, never overwritten."""

import contextlib
import os
import shutil
from pathlib import Path
from typing import Literal

from prony.base.clock import Clock, iso
from prony.base.errors import ConfigError, LaunchError
from prony.base.model import Frozen, read_model
from prony.run import procfs
from prony.run.folder import JobFolder

_RESERVE = ".reserve"
_RESERVE_BYTES = 16 * 2**10
_OUTPUTS = ("exit.json", "result.json", "events.npz", "progress.json", "load.json", "logs")


class Claim(Frozen):
    """Which process runs (or ran) an attempt: `pid@boot+starttime`."""

    schema_version: Literal["prony.claim/1"] = "prony.claim/1"
    attempt: int
    supervisor: str
    claimed_at: str

    @property
    def live(self) -> bool:
        """That very process still runs."""
        who = procfs.Identity.parse(self.supervisor)
        return who is not None and who.alive


def read_claim(folder: JobFolder, attempt: int) -> Claim | None:
    """Read the claim on an attempt, or None when nobody made one (or was killed while making it)."""
    try:
        return read_model(claim_file(folder, attempt), Claim)
    except ConfigError:
        return None


def claim_file(folder: JobFolder, attempt: int) -> Path:
    """Return the file whose creation claims an attempt."""
    return folder.path / f"claim-{attempt}.json"


def next_attempt(folder: JobFolder) -> int:
    """Return the number of the first attempt that nobody has claimed yet (from 1)."""
    return max(_attempts(folder), default=0) + 1


def claim(folder: JobFolder, attempt: int, clock: Clock) -> None:
    """Claim an attempt for this process and move what earlier ones left into attempts/<n>/.

    Raises LaunchError when the attempt is taken, when another process runs any attempt, or when the disk refuses.
    """
    mine = Claim(attempt=attempt, supervisor=str(procfs.own_identity()), claimed_at=iso(clock.wall()))
    path = claim_file(folder, attempt)
    try:
        with path.open("xb") as file:
            file.write(mine.model_dump_json().encode())
    except FileExistsError:
        raise _taken(folder, attempt) from None
    except OSError as error:
        raise _refused(path, error) from None
    earlier = [number for number in _attempts(folder) if number != attempt]
    for number in earlier:
        other = read_claim(folder, number)
        if other is not None and other.live:
            path.unlink()
            raise _taken(folder, number)
    try:
        _set_aside(folder, max(earlier, default=0))
    except OSError as error:
        raise _refused(folder.path, error) from None
    _reserve(folder)


def release_reserve(folder: JobFolder) -> None:
    """Give back the disk space that was kept, so that exit.json fits even on a full disk."""
    with contextlib.suppress(OSError):
        (folder.path / _RESERVE).unlink()


def drop_partials(folder: JobFolder) -> None:
    """Remove files that a killed process or a full disk left half written."""
    for partial in folder.path.glob(".*.partial"):
        with contextlib.suppress(OSError):
            partial.unlink()


def _reserve(folder: JobFolder) -> None:
    with contextlib.suppress(OSError), (folder.path / _RESERVE).open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, _RESERVE_BYTES)


def _attempts(folder: JobFolder) -> list[int]:
    numbers = [path.stem.removeprefix("claim-") for path in folder.path.glob("claim-*.json")]
    return sorted(int(number) for number in numbers if number.isdigit())


def _set_aside(folder: JobFolder, attempt: int) -> None:
    left = [folder.path / name for name in _OUTPUTS if (folder.path / name).exists()]
    if not left:
        return
    place = folder.path / "attempts" / str(attempt)
    place.mkdir(parents=True, exist_ok=True)
    for path in left:
        shutil.move(path, place / path.name)


def _taken(folder: JobFolder, attempt: int) -> LaunchError:
    other = read_claim(folder, attempt)
    if other is not None and other.live:
        return LaunchError(
            f"{folder.path}: attempt {attempt} is being run by process {other.supervisor.partition('@')[0]}",
            fix="wait for it, or stop it with TERM",
        )
    return LaunchError(
        f"{folder.path}: attempt {attempt} has been made already",
        fix=f"leave out --attempt to run it again as attempt {next_attempt(folder)}",
    )


def _refused(path: Path, error: OSError) -> LaunchError:
    return LaunchError(
        f"{path}: cannot be written: {error.strerror}", fix="free space on that file system, or check its permissions"
    )
