"""Files that are either whole or absent."""

import contextlib
import hashlib
import os
from pathlib import Path

from prony.base.errors import LaunchError


def write_atomic(path: Path, content: bytes) -> None:
    """Write content to path by rename, synced to disk. Raises LaunchError when it cannot be written whole."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise LaunchError(
            f"{path}: cannot be written: {error.strerror}",
            fix="free space on that file system or choose another place with --out; then go on with --resume",
        ) from None


def sha256_of(path: Path) -> str:
    """Return the sha256 (64 hex digits) of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
