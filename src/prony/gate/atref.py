"""Configs as a commit holds them, by the paths that they have in the work tree."""

from collections.abc import Sequence
from pathlib import Path

from prony.base.errors import ConfigError
from prony.gate.document import Config, Source, file_source, read_config
from prony.gate.git import Checkout, find_checkout


def config_at(ref: str, configs: Sequence[Path], runners: Path) -> Config:
    """Read configs and runners of a commit; a file that it does not have is left out, runners are then today's.

    Raises ConfigError when the files are in no git work tree, or when the ref names no commit.
    """
    checkout = find_checkout(configs[0].resolve().parent)
    commit = checkout.commit(ref)
    masters = [(path, checkout.text(commit, _inside(checkout, path))) for path in configs]
    before = checkout.text(commit, _inside(checkout, runners))
    source = file_source(runners) if before is None else Source(str(runners), before)
    return read_config([Source(str(path), text) for path, text in masters if text], source)


def _inside(checkout: Checkout, path: Path) -> str:
    try:
        return path.resolve().relative_to(checkout.folder.resolve()).as_posix()
    except ValueError:
        raise ConfigError(
            f"{path}: not in the git work tree {checkout.folder}", fix="name the base with --base FILE"
        ) from None
