"""What a check asks git beside files: the base branch, changed paths, who mentions a name."""

import os
from dataclasses import dataclass
from pathlib import Path

from prony.base.errors import ConfigError
from prony.base.files import is_partial
from prony.spec.changelog.gitfiles import Repository

DEFAULT_BASES = ("origin/main", "origin/master", "main", "master")


@dataclass(frozen=True)
class Checkout(Repository):
    """A git work tree that is about to be pushed."""

    def default_base(self) -> str:
        """Return the branch that changes go to. Raises ConfigError when none of the usual names exists."""
        for ref in DEFAULT_BASES:
            if not self._git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").returncode:
                return ref
        self._require_work_tree()
        raise ConfigError(f"{self.folder}: no base branch", allowed=", ".join(DEFAULT_BASES), fix="name it: --base REF")

    def text(self, commit: str, path: str) -> str | None:
        """Return a text file of a commit, or None where the commit has none. Raises ConfigError when not UTF-8."""
        if not self.has(commit, path):
            return None
        try:
            return self.read(commit, path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: not UTF-8 at byte {error.start} in commit {commit[:12]}") from None

    def changed(self, commit: str) -> tuple[str, ...]:
        """Return the paths in which the work tree, new files included, differs from a commit."""
        tracked = self._output("diff", "--name-only", "-z", "--no-renames", commit).split("\0")
        new = self._output("ls-files", "--others", "--exclude-standard", "-z").split("\0")
        return tuple(sorted({name for name in (*tracked, *new) if name and not is_partial(name)}))

    def unmerged(self) -> tuple[str, ...]:
        """Return the paths that an unfinished merge left in conflict."""
        lines = self._output("ls-files", "--unmerged", "-z").split("\0")
        return tuple(dict.fromkeys(line.partition("\t")[2] for line in lines if line))

    def uncommitted(self) -> int:
        """Return how many tracked or new files are not committed."""
        lines = self._output("status", "--porcelain", "-z").split("\0")
        return sum(bool(line) and not is_partial(line[3:]) for line in lines)

    def last_change(self, since: str, until: str, path: str) -> str:
        """Return the newest commit of a range that touches a path, as `hash subject`; empty when none does."""
        return self._output("log", "-1", "--format=%h %s", f"{since}..{until}", "--", path).strip()

    def mentions(self, words: tuple[str, ...]) -> tuple[tuple[str, str, int], ...]:
        """Return (word, path, line) of tracked text that holds a word as a whole, no part of a longer name."""
        # A name that holds a line end stands on no line.
        patterns = [word for word in words if word and not set(word) & set("\n\r\0")]
        given = "\n".join(patterns).encode("utf-8", "surrogateescape")
        if not patterns:
            return ()
        found = self._git("grep", "-n", "-z", "-I", "-F", "-f", "-", given=given)
        if found.returncode > 1:
            raise self._failed("grep", found.stderr)
        lines = (line.split("\0", 2) for line in _text(found.stdout).splitlines())
        return tuple(
            (word, path, int(number))
            for path, number, text in (line for line in lines if len(line) == 3)
            for word in patterns
            if _whole(word, text)
        )

    def _output(self, *words: str) -> str:
        found = self._git(*words)
        if found.returncode:
            raise self._failed(words[0], found.stderr)
        return _text(found.stdout)

    def _failed(self, verb: str, stderr: bytes) -> ConfigError:
        detail = _text(stderr).strip().removeprefix("fatal: ")
        return ConfigError(f"{self.folder}: git {verb} failed: {detail}", fix="try it by hand in that folder")


def find_checkout(place: Path) -> Checkout:
    """Return the work tree that a folder is in. Raises ConfigError when it is in none."""
    if not place.is_dir():
        raise ConfigError(f"{place}: no such folder", fix="name the checkout with --repo DIR")
    found = Checkout(place)._git("rev-parse", "--show-toplevel")
    if found.returncode:
        raise ConfigError(f"{place}: not in a git work tree", fix="go to the checkout, or name it with --repo DIR")
    return Checkout(Path(os.fsdecode(found.stdout).rstrip("\n")))


def _text(raw: bytes) -> str:
    """Return what git printed; bytes of a name that are not UTF-8 as escapes, for it is only shown."""
    return raw.decode("utf-8", "backslashreplace")


def _whole(word: str, text: str) -> bool:
    at = text.find(word)
    while at >= 0:
        before, after = text[max(0, at - 1) : at], text[at + len(word) : at + len(word) + 1]
        if not _in_name(before) and not _in_name(after):
            return True
        at = text.find(word, at + 1)
    return False


def _in_name(char: str) -> bool:
    return char.isalnum() or char in ("-", "_")
