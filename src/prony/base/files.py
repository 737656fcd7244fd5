"""Files that are either whole or absent."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from prony.base.errors import LaunchError

_SPACE = "free space on that file system (df -h)"
_RIGHTS = "make its folder writable for you, or choose another place"
_NOT_A_FOLDER = "a part of that path is a file: name a folder"
# What an operator can do, by what the system said.
_FIXES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
    errno.EISDIR: "that is a folder: name a file",
    errno.ENOTDIR: _NOT_A_FOLDER,
    errno.EEXIST: _NOT_A_FOLDER,
    errno.ENOENT: "its folder is missing: make it with mkdir -p, or choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def write_fault(path: Path, error: OSError) -> LaunchError:
    """Return the fault of a file or folder that the system refused to write, with what can be done about it."""
    fix = _FIXES.get(error.errno or 0, "look at the disk's health (dmesg), or choose another place")
    return LaunchError(f"{path}: cannot be written: {error.strerror or error}", fix=fix)


def make_folder(path: Path) -> None:
    """Make a folder and those above it. Raises LaunchError that says when a file is in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise LaunchError(f"{path}: is a file, not a folder", fix="name a folder, or a path that is free") from None
    except OSError as error:
        raise write_fault(path, error) from None


def check_can_write(path: Path) -> None:
    """Refuse, before long work, a file that could not be written after it. Raises LaunchError."""
    code = 0
    if path.is_dir():
        code = errno.EISDIR
    elif not path.parent.is_dir():
        code = errno.ENOTDIR if path.parent.exists() else errno.ENOENT
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        code = errno.EACCES
    if code:
        raise write_fault(path, OSError(code, os.strerror(code)))


def write_atomic(path: Path, content: bytes) -> None:
    """Write content to path by rename, synced to disk. Raises LaunchError when it cannot be written whole.

    A link stays a link and its target is written; a file that was there keeps its permissions.
    """
    if path.is_dir():
        raise write_fault(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    if path.is_symlink():
        path = path.resolve()
    if path.exists() and not path.is_file():
        _write_through(path, content)
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            partial.chmod(stat.S_IMODE(path.stat().st_mode))
        partial.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError):
            raise write_fault(path, error) from None
        raise


def _write_through(path: Path, content: bytes) -> None:
    """Write to a pipe or a device, which stay what they are."""
    try:
        with path.open("wb") as file:
            file.write(content)
    except OSError as error:
        raise write_fault(path, error) from None


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep other processes that do the same out of reading, changing and writing a file; they wait."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise write_fault(path, error) from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def is_partial(name: str) -> bool:
    """Say whether a file's name is that of a write that was killed."""
    return re.fullmatch(r"\..+\.\d+\.partial", name.rpartition("/")[2]) is not None


def sha256_of(path: Path) -> str:
    """Return the sha256 (64 hex digits) of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
