"""Whole files at revisions of a git repository; every failure of git is an error, never an empty answer."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from prony.base.errors import ConfigError


@dataclass(frozen=True)
class Repository:
    """A git work tree; paths are relative to its root."""

    folder: Path

    def commit(self, ref: str) -> str:
        """Return the full name of the commit that a ref names. Raises ConfigError."""
        if not ref.strip():
            raise ConfigError("an empty name is no commit", allowed="a branch, tag or commit", fix="name one: HEAD")
        found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if found.returncode:
            self._require_work_tree()
            raise ConfigError(
                f"{self.folder}: '{ref}' names no commit", allowed="a branch, tag or commit that was fetched",
                fix=f"git -C {self.folder} fetch origin, or check the name",
            )  # fmt: skip
        return found.stdout.decode().strip()

    def merge_base(self, one: str, other: str) -> str:
        """Return the last common commit of two commits. Raises ConfigError."""
        found = self._git("merge-base", one, other)
        if found.returncode:
            raise ConfigError(
                f"{self.folder}: {one[:12]} and {other[:12]} have no common commit here",
                fix=f"fetch more history: git -C {self.folder} fetch --unshallow",
            )
        return found.stdout.decode().strip()

    def root(self) -> Path:
        """Return the top folder of the work tree, which paths are relative to."""
        found = self._git("rev-parse", "--show-toplevel")
        return Path(os.fsdecode(found.stdout).rstrip("\n")) if not found.returncode else self.folder

    def has(self, commit: str, path: str) -> bool:
        """Whether a file exists at a commit: by its tree, so that one whose content is not here is no absent one."""
        found = self._git("ls-tree", "-z", "--name-only", commit, "--", f":(top,literal){path}")
        if found.returncode:
            detail = found.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
            raise ConfigError(f"{self.folder}: git ls-tree failed: {detail}", fix="try it by hand in that folder")
        return bool(found.stdout)

    def read(self, commit: str, path: str) -> bytes:
        """Return a file as stored at a commit. Raises ConfigError."""
        found = self._git("show", f"{commit}:{path}")
        if found.returncode:
            detail = found.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
            raise ConfigError(
                f"{self.folder}: {path} cannot be read at {commit[:12]}: {detail}",
                allowed="a path from the root of the repository", fix="check the path and the ref",
            )  # fmt: skip
        return found.stdout

    def _require_work_tree(self) -> None:
        if self._git("rev-parse", "--git-dir").returncode:
            raise ConfigError(f"{self.folder}: not a git repository", fix="name one with --repo DIR")

    def _git(self, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run git with `given` as its standard input. Raises ConfigError where it cannot even be started."""
        try:
            return subprocess.run(
                ["git", "-C", str(self.folder), "-c", "color.ui=false", *words],
                input=given,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise ConfigError("git is not installed", fix="install git, or name two files: --base, --head") from None
        except (OSError, ValueError) as error:  # a NUL in a name, a list that is too long, no memory to fork
            why = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"git {words[0]} cannot be run: {why}", fix="check the names that it was given") from None
