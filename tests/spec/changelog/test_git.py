"""Revisions of a real repository: compared from the last common commit, merged by the driver, failures told."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from prony.cli.main import main
from tests.spec.changelog.test_rules import BASE, LINK, entry

LOG = "perf-changelog.yaml"


class Repo:
    """A repository in a folder, with main and a branch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "t")
        self.git("config", "user.email", "t@example.org")
        self.commit(BASE)
        self.git("branch", "pr")

    def git(self, *words: str, ok: bool = True) -> str:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        command = ["git", "-C", str(self.folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        assert not ok or done.returncode == 0, done.stderr
        return done.stdout if ok else done.stdout + done.stderr

    def commit(self, text: str) -> None:
        (self.folder / LOG).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")

    def on(self, branch: str, text: str) -> None:
        self.git("checkout", "-q", branch)
        self.commit(text)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository whose branch appends an entry while main appends another."""
    found = Repo(tmp_path)
    found.on("main", f"{BASE}\n{entry('d', f'{LINK}7')}")
    found.on("pr", f"{BASE}\n{entry('c', 'XXX')}")
    return found


def test_what_main_appended_meanwhile_is_no_deletion(repo: Repo) -> None:
    options = ["--repo", str(repo.folder), "--base-ref", "main", "--pr", "9"]
    assert main(["changelog", "check", *options]) == 0
    assert main(["changelog", "check", *options, "--head-ref", "pr"]) == 0
    assert main(["changelog", "check", "--repo", str(repo.folder), "--base-ref", "main"]) == 2


def test_a_run_from_a_sub_folder_sees_the_same(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo.folder / "deep").mkdir()
    monkeypatch.chdir(repo.folder / "deep")
    assert main(["changelog", "check", "--base-ref", "main", "--pr", "9"]) == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--base-ref", "nowhere"], "names no commit"),
        (["--base-ref", "--upload-pack=x"], "names no commit"),
        (["--base-ref", "main", "--changelog-file", "missing.yaml"], "missing.yaml cannot be read"),
        (["--base-ref", "other"], "no common commit"),
        (["--base-ref", "main", "--config-files", "none.yaml"], "none.yaml cannot be read"),
    ],
)
def test_a_failure_of_git_is_told_and_never_an_empty_change(
    repo: Repo, options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.git("checkout", "-q", "--orphan", "other")
    repo.git("commit", "-q", "--allow-empty", "-m", "unrelated")
    repo.git("checkout", "-q", "pr")
    options = [f"--base-ref={options[1]}", *options[2:]]
    assert main(["changelog", "check", "--repo", str(repo.folder), *options]) == 2
    assert told in capsys.readouterr().err


def test_a_folder_without_a_repository_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["changelog", "check", "--repo", str(tmp_path), "--base-ref", "main"]) == 2
    assert "not a git repository" in capsys.readouterr().err


def use_driver(repo: Repo, *options: str) -> None:
    """Set the driver up as docs/how-to/changelog.md says, with this interpreter as `prony`."""
    (repo.folder / ".git/info").mkdir(exist_ok=True)
    (repo.folder / ".git/info/attributes").write_text(f"{LOG} merge=perf-changelog\n")
    command = [sys.executable, "-m", "prony", "changelog", "resolve", *options]
    driver = f"{shlex.join(command)} --base %O --ours %A --theirs %B --out %A --path %P"
    repo.git("config", "merge.perf-changelog.driver", driver)


def test_git_merges_two_appends_by_the_driver(repo: Repo) -> None:
    use_driver(repo)
    repo.git("merge", "-q", "main", "-m", "merge main")
    merged = (repo.folder / LOG).read_text()
    assert merged == f"{BASE}\n{entry('d', f'{LINK}7')}\n{entry('c', 'XXX')}"
    assert main(["changelog", "check", "--repo", str(repo.folder), "--base-ref", "main", "--pr", "9"]) == 0


def test_the_driver_fills_in_the_link_of_a_named_pull_request(repo: Repo) -> None:
    use_driver(repo, "--pr", "9")
    repo.git("merge", "-q", "main", "-m", "merge main")
    assert (repo.folder / LOG).read_text().endswith(entry("c", f"{LINK}9"))


def test_the_driver_leaves_a_conflict_where_it_cannot_know(repo: Repo) -> None:
    use_driver(repo)
    repo.on("pr", BASE.replace("- a\n", "- z\n"))
    told = repo.git("merge", "-q", "main", "-m", "merge main", ok=False)
    assert f"ours {LOG}:2:" in told and ".merge_file" not in told
    assert repo.git("ls-files", "--unmerged")
    assert (repo.folder / LOG).read_text() == BASE.replace("- a\n", "- z\n")
