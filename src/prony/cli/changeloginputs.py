"""The two versions of a change log that commands compare: from files, or from a git repository."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import whole

if TYPE_CHECKING:
    from prony.spec.changelog.document import Source
    from prony.spec.changelog.gitfiles import Repository
    from prony.spec.changelog.select import Masters
    from prony.spec.compat.generate import Catalogue

_MASTERS = (Path("configs/amd-master.yaml"), Path("configs/nvidia-master.yaml"))
_RUNNERS = Path("configs/runners.yaml")


@dataclass(frozen=True)
class Inputs:
    """Base and head, what they are called, and the configs; masters is None where no config was named or found.

    uncommitted: the work tree holds another version than the head that was compared.
    """

    base: "Source"
    head: "Source"
    base_name: str
    head_name: str
    masters: "Masters | None"
    uncommitted: bool = False


def add_pr_argument(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --pr."""
    parser.add_argument("--pr", type=whole(1), metavar="N", help=what)


def add_version_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is compared, and with which configs."""
    files = parser.add_argument_group("two files")
    files.add_argument("--base", type=Path, metavar="FILE", help="the change log as it was")
    files.add_argument("--head", type=Path, metavar="FILE", help="the change log as it shall be")
    refs = parser.add_argument_group("or two revisions of a git repository")
    refs.add_argument(
        "--base-ref", metavar="REF", help="the branch to merge into; compared from the last common commit"
    )
    refs.add_argument("--head-ref", metavar="REF", help="the branch with the change; default: HEAD")
    refs.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="default: the current folder")
    refs.add_argument(
        "--changelog-file", default="perf-changelog.yaml", metavar="PATH", help="from the repository root"
    )
    configs = parser.add_argument_group("configs that the entries name (paths at the revisions, when those are given)")
    configs.add_argument("--config-files", nargs="+", type=Path, metavar="F", help="master configs of head")
    configs.add_argument(
        "--runner-config", type=Path, metavar="F", help="default: runners.yaml beside the first config"
    )
    configs.add_argument(
        "--base-config-files", nargs="+", type=Path, metavar="F", help="of base; default: those of head"
    )
    configs.add_argument("--base-runner-config", type=Path, metavar="F", help="default: that of head")


def read_inputs(arguments: argparse.Namespace) -> Inputs:
    """Read both versions and the configs. Raises ConfigError."""
    from prony.base.errors import ConfigError

    by_file = arguments.base is not None or arguments.head is not None
    if by_file == (arguments.base_ref is not None or arguments.head_ref is not None):
        raise ConfigError(
            "name two files or two revisions", allowed="--base FILE --head FILE, or --base-ref REF [--head-ref REF]",
            fix="prony changelog check --base-ref origin/main",
        )  # fmt: skip
    return _from_files(arguments) if by_file else _from_git(arguments)


def default_masters(root: Path) -> list[Path]:
    """Return the master configs of a checkout that are there."""
    return [root / path for path in _MASTERS if (root / path).exists()]


def read_source(path: Path, side: str = "", name: str | None = None) -> "Source":
    """Read one version; side: what messages put before its path, or before its name. Raises ConfigError."""
    from prony.spec.changelog.document import Source

    return Source(read_bytes(path), f"{side} {name or path}" if side else str(path))


def read_bytes(path: Path) -> bytes:
    """Read a file. Raises ConfigError."""
    from prony.base.errors import ConfigError

    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", fix="check the path") from None


def _from_files(arguments: argparse.Namespace) -> Inputs:
    from prony.base.errors import ConfigError

    if arguments.base is None or arguments.head is None:
        raise ConfigError("both versions are needed", allowed="--base FILE --head FILE", fix="name the other file too")
    base, head = read_source(arguments.base), read_source(arguments.head)
    return Inputs(base, head, str(arguments.base), str(arguments.head), _masters_of_files(arguments))


def mending(arguments: argparse.Namespace) -> str:
    """Return the command that mends the versions in use."""
    import shlex

    number = [] if arguments.pr is None else ["--pr", str(arguments.pr)]
    if getattr(arguments, "ours", None) is not None:
        words = ["--base", str(arguments.base), "--head", str(arguments.ours)]
    elif arguments.head is not None:
        words = ["--base", str(arguments.base), "--head", str(arguments.head)]
    else:
        repo = [] if arguments.repo == Path() else ["--repo", str(arguments.repo)]
        head = [] if arguments.head_ref is None else ["--head-ref", arguments.head_ref]
        out = ["--out", str(arguments.repo / arguments.changelog_file)]
        words = [*repo, "--base-ref", arguments.base_ref or "HEAD", *head, *out]
    return f"run '{shlex.join(['prony', 'changelog', 'check', *words, *number, '--fix'])}'"


def runner_config(arguments: argparse.Namespace) -> Path:
    """Return the runners file of the configs."""
    named: Path | None = arguments.runner_config
    return named or arguments.config_files[0].with_name("runners.yaml")


def _masters_of_files(arguments: argparse.Namespace) -> "Masters | None":
    if not arguments.config_files:
        return None
    from prony.spec.changelog.select import Masters
    from prony.spec.compat.generate import load_catalogue

    runners = runner_config(arguments)
    head = load_catalogue(arguments.config_files, runners)
    base_files = arguments.base_config_files or arguments.config_files
    base_runners = arguments.base_runner_config or runners
    same = base_files == arguments.config_files and base_runners == runners
    return Masters(head, head if same else load_catalogue(base_files, base_runners))


def _from_git(arguments: argparse.Namespace) -> Inputs:
    from prony.spec.changelog.document import Source
    from prony.spec.changelog.gitfiles import Repository

    repository = Repository(arguments.repo)
    base_name, head_name = ("HEAD" if ref is None else ref for ref in (arguments.base_ref, arguments.head_ref))
    head = repository.commit(head_name)
    base = repository.merge_base(repository.commit(base_name), head)
    path = arguments.changelog_file
    # A base without the file has an empty change log; a head without it is an error.
    before = repository.read(base, path) if repository.has(base, path) else b""
    return Inputs(
        Source(before, f"{base_name}:{path}"),
        Source(repository.read(head, path), path),
        base_name,
        head_name,
        _masters_of_git(arguments, repository, base, head),
        arguments.head_ref is None and _differs(repository.root() / path, repository.read(head, path)),
    )


def _differs(file: Path, raw: bytes) -> bool:
    try:
        return file.read_bytes() != raw
    except OSError:
        return False


def _masters_of_git(arguments: argparse.Namespace, repository: "Repository", base: str, head: str) -> "Masters | None":
    from prony.base.errors import ConfigError
    from prony.spec.changelog.select import Masters

    files = arguments.config_files or [path for path in _MASTERS if repository.has(head, str(path))]
    if not files:
        return None
    runners = arguments.runner_config or (runner_config(arguments) if arguments.config_files else _RUNNERS)
    base_files = arguments.base_config_files or [path for path in files if repository.has(base, str(path))]
    base_runners = arguments.base_runner_config or runners
    after = _blobs(repository, head, [*files, runners])
    new = _catalogue(after)
    if not base_files:
        return Masters(new, new)
    try:
        before = _blobs(repository, base, [*base_files, base_runners])
        same = [raw for _, raw in before] == [raw for _, raw in after]
        return Masters(new, new if same else _catalogue(before))
    except ConfigError as error:  # told where an append-only entry needs them
        return Masters(new, error)


def _blobs(repository: "Repository", commit: str, paths: Sequence[Path]) -> list[tuple[str, bytes]]:
    return [(f"{commit[:12]}:{path}", repository.read(commit, str(path))) for path in paths]


def _catalogue(blobs: Sequence[tuple[str, bytes]]) -> "Catalogue":
    """Read master configs and, last of all, their runners."""
    from prony.base.errors import ConfigError
    from prony.base.yamldoc import parse_yaml
    from prony.spec.compat.generate import make_catalogue
    from prony.spec.runners import read_runners

    documents = []
    for name, raw in blobs:
        try:
            documents.append(parse_yaml(raw.decode("utf-8"), name))
        except UnicodeDecodeError as error:
            raise ConfigError(f"{name}: not UTF-8 at byte {error.start}", fix="save the file as UTF-8") from None
    return make_catalogue(documents[:-1], read_runners(documents[-1]))
