"""Configs from text, and git repositories made of the real files."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from prony.gate.document import Config, Source, file_source, read_config
from tests.gate.faulty import MASTER, RUNNERS

CONFIGS = ("configs/nvidia-master.yaml", "configs/amd-master.yaml")
CHANGELOG = "perf-changelog.yaml"
NEW_KEY = MASTER.partition("\n\n")[0].replace("dsr1-fp4-b200-sglang", "dsr1-fp4-b200-sglang-new") + "\n"


def config(master: str, runners: str = RUNNERS, name: str = "master.yaml") -> Config:
    """Read a config from text."""
    return read_config([Source(name, master)], Source("runners.yaml", runners))


def real_config(shared: Path) -> Config:
    """Read the real masters."""
    root = shared / "data/inferencex"
    masters = [Source(path, file_source(root / path).text) for path in CONFIGS]
    return read_config(masters, Source("configs/runners.yaml", file_source(root / "configs/runners.yaml").text))


@dataclass(frozen=True)
class Repo:
    """A git repository in a folder of the test."""

    root: Path

    def git(self, *words: str) -> str:
        """Run git; its output."""
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(("git", *identity, *words), cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout

    def commit(self, message: str) -> None:
        """Commit all that is there."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace text that stands once in a file."""
        file = self.root / path
        text = file.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        file.write_text(text.replace(old, new))

    def append(self, path: str, text: str) -> None:
        """Append text to a file."""
        with (self.root / path).open("a") as file:
            file.write(text)


def real_repo(shared: Path, folder: Path, entries: int | None = None) -> Repo:
    """Make a repository of the real configs and the end of the change log, with a branch `work` from `main`."""
    for path in (*CONFIGS, "configs/runners.yaml", CHANGELOG):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        raw = (shared / "data/inferencex" / path).read_bytes()
        target.write_bytes(_last(raw, entries) if path == CHANGELOG and entries else raw)
    repo = Repo(folder)
    repo.git("init", "-q", "-b", "main")
    repo.commit("all")
    repo.git("checkout", "-q", "-b", "work")
    return repo


def _last(log: bytes, entries: int) -> bytes:
    """Return a change log of only its last entries: most tests need some history, none of them all of it."""
    start = b"\n- config-keys:"
    return (start + start.join(log.split(start)[-entries:])).lstrip(b"\n")
