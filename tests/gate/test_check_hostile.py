"""The check before a push where names, refs and histories are not what one expects."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prony.cli.main import main
from tests.gate.kit import CHANGELOG, NEW_KEY, Repo, real_repo
from tests.gate.test_check import AMD, LINK, OLD_KEY, Check, entry

EMPTY = "an empty name is no commit"


@pytest.fixture
def repo(shared: Path, tmp_path: Path) -> Repo:
    return real_repo(shared, tmp_path / "checkout", entries=20)


@pytest.fixture
def check(repo: Repo, capsys: pytest.CaptureFixture[str]) -> Check:
    return Check(repo, capsys)


def without_log(repo: Repo) -> None:
    """Take the change log out of the base branch."""
    repo.git("checkout", "-q", "main")
    repo.git("rm", "-q", CHANGELOG)
    repo.git("commit", "-q", "-m", "no change log yet")
    repo.git("checkout", "-q", "-B", "work")


def test_the_first_change_log_is_judged_as_any_other(repo: Repo, check: Check) -> None:
    without_log(repo)
    repo.append(CHANGELOG, entry(OLD_KEY, link="nonsense").lstrip())
    assert "changelog-link" in check()[2]
    (repo.root / CHANGELOG).unlink()
    repo.append(CHANGELOG, "\n" + entry(OLD_KEY))
    assert "changelog-extra-blank" in check()[2]
    assert check("--fix")[0] == 0
    assert check()[1]["sweep"]["benchmarks"] > 0


def test_add_begins_a_change_log_that_check_accepts(
    repo: Repo, check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    without_log(repo)
    file = repo.root / CHANGELOG
    assert main(["changelog", "add", "--keys", OLD_KEY, "--description", "Begin", "--file", str(file)]) == 0
    assert "begun with" in capsys.readouterr().out
    assert check()[0] == 0
    file.write_bytes(b"")
    assert main(["changelog", "add", "--keys", OLD_KEY, "--description", "Begin", "--file", str(file)]) == 0
    assert main(["changelog", "add", "--keys", OLD_KEY, "--description", "Go on", "--file", str(file)]) == 0
    assert check()[0] == 0
    repo.commit("begin the change log")
    assert main(["changelog", "check", "--repo", str(repo.root), "--base-ref", "main", "--pr", "7"]) == 0


def test_a_change_log_may_begin_from_an_empty_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, head = tmp_path / "base.yaml", tmp_path / "head.yaml"
    base.write_bytes(b"")
    head.write_text(entry("k", link=f"{LINK}7").lstrip())
    assert main(["changelog", "check", "--base", str(base), "--head", str(head), "--pr", "7"]) == 0
    assert main(["changelog", "check", "--base", str(head), "--head", str(base), "--pr", "7"]) == 2
    assert "deleted" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["check", "--repo", "REPO", "--base", ""],
        ["changelog", "check", "--repo", "REPO", "--base-ref", ""],
        ["changelog", "check", "--repo", "REPO", "--base-ref", "main", "--head-ref", " "],
        ["changelog", "select", "--repo", "REPO", "--base-ref", ""],
        ["lint", "REPO/configs/amd-master.yaml", "--base-ref", ""],
        ["matrix", "diff", "--repo", "REPO", "", "HEAD"],
    ],
    ids=" ".join,
)
def test_an_empty_ref_is_refused_everywhere(repo: Repo, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main([word.replace("REPO", str(repo.root)) for word in words]) == 2
    assert EMPTY in capsys.readouterr().err


def test_a_file_name_that_is_no_text_is_shown_as_escapes(repo: Repo, check: Check) -> None:
    (repo.root / os.fsdecode(b"odd\xff.txt")).write_text("x")
    code, report, _ = check()
    assert code == 0 and report["changed"] == ["odd\\xff.txt"]
    assert "1 file not committed" in check.text()


def test_removed_keys_may_be_many_and_of_any_spelling(repo: Repo, check: Check) -> None:
    odd = ['"nul\\0key"', '"two\\nlines"', *(f"key-{number}-{'x' * 200}" for number in range(2000))]
    body = NEW_KEY.partition(":\n")[2]
    file = repo.root / AMD
    before = file.read_text()
    repo.git("checkout", "-q", "main")
    repo.append(AMD, "".join(f"\n{name}:\n{body}" for name in odd[:2]))
    repo.append("README.md", f"see {odd[2]}\n")
    repo.append(AMD, "".join(f"\n{name}:\n  broken: yes\n" for name in odd[2:]))
    repo.commit("odd keys")
    repo.git("checkout", "-q", "-B", "work")
    file.write_text(before)
    _, report, rules = check()
    assert "name-dangling" in rules
    assert [f["where"]["file"] for f in report["findings"] if f["rule"] == "name-dangling"] == ["README.md"]


def test_fix_says_line_by_line_what_it_did(repo: Repo, check: Check) -> None:
    repo.append(CHANGELOG, "\n" + entry(OLD_KEY))
    said = check.text("--fix")
    assert f"{CHANGELOG}:" in said and "blank line removed" in said


def test_the_next_step_names_what_is_not_committed(repo: Repo, check: Check) -> None:
    repo.append(CHANGELOG, entry(OLD_KEY))
    (repo.root / "note.md").write_text("x")
    assert check()[1]["next"]["text"].startswith("commit 2 files, then push")
    repo.commit("ask for a run")
    assert check()[1]["next"] == {**check()[1]["next"], "command": "git push"}


@pytest.mark.parametrize("state", ["detached", "shallow", "renamed", "config-deleted", "symlink"])
def test_odd_states_of_a_checkout_end_in_a_report_or_one_error(
    repo: Repo, capsys: pytest.CaptureFixture[str], tmp_path: Path, state: str
) -> None:
    root = repo.root
    if state == "detached":
        repo.git("checkout", "-q", "--detach")
    if state == "shallow":
        repo.git("clone", "-q", "--depth", "1", f"file://{root}", str(tmp_path / "shallow"))
        root = tmp_path / "shallow"
    if state == "renamed":
        repo.git("mv", AMD, "configs/amd2.yaml")
    if state == "config-deleted":
        repo.git("rm", "-q", AMD)
    if state == "symlink":
        (root / CHANGELOG).rename(root / "log.yaml")
        (root / CHANGELOG).symlink_to("log.yaml")
    code = main(["check", "--repo", str(root), "--json"])
    out, err = capsys.readouterr()
    assert code in (0, 2) and "Traceback" not in err
    assert (json.loads(out)["exit_code"] == code) if out else err.startswith("prony: ")


def test_changes_that_are_not_committed_are_told_where_commits_are_compared(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.append(CHANGELOG, entry(OLD_KEY))
    words = ["changelog", "check", "--repo", str(repo.root), "--base-ref", "main", "--pr", "7"]
    assert main(words) == 2
    assert "not committed, so not judged here" in capsys.readouterr().err
    repo.commit("ask for a run")
    assert main(words) == 0
    assert not capsys.readouterr().err


def test_a_broken_key_hides_no_entry_that_names_nothing(repo: Repo, check: Check) -> None:
    """Keys are looked up though another key of the configs cannot be read; that one's own name is no unknown one."""
    repo.append(AMD, "\nbroken-key: { image: i, multinode: false }\n")
    repo.commit("a broken key")
    repo.git("checkout", "-q", "-B", "main")
    repo.git("checkout", "-q", "-B", "work")
    repo.append(CHANGELOG, entry("nobody-has-this"))
    code, found, rules = check()
    assert code == 2 and rules == ["changelog-unknown-key"]
    assert "'nobody-has-this' is no key" in found["findings"][0]["message"]
    repo.git("checkout", "-q", "--", CHANGELOG)
    repo.append(CHANGELOG, entry("broken-key"))
    assert "changelog-unknown-key" not in check()[2]


def test_a_change_log_whose_content_git_cannot_give_is_no_empty_one(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    blob = repo.git("rev-parse", f"main:{CHANGELOG}").strip()
    repo.append(CHANGELOG, entry(OLD_KEY))
    (repo.root / ".git" / "objects" / blob[:2] / blob[2:]).chmod(0o644)
    (repo.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert main(["check", "--repo", str(repo.root)]) == 2
    assert f"{CHANGELOG} cannot be read at" in capsys.readouterr().err


def test_colours_that_git_is_told_to_use_hide_nothing(repo: Repo, check: Check) -> None:
    repo.append("note.txt", f"see {OLD_KEY}\n")
    repo.commit("a note")
    repo.git("config", "color.ui", "always")
    repo.replace(AMD, f"\n{OLD_KEY}:\n", "\nrenamed-key:\n")
    _, found, rules = check()
    assert rules == ["name-dangling"] and "note.txt" in json.dumps(found)


def test_what_a_killed_write_left_is_no_file_of_the_change(repo: Repo, check: Check) -> None:
    (repo.root / f".{CHANGELOG}.4711.partial").write_text("half")
    repo.append(CHANGELOG, entry(OLD_KEY))
    assert "partial" not in json.dumps(check()[1])


def test_entries_appended_at_once_are_all_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "prony", "changelog", "add", "--keys", "k", "--file", "log.yaml", "--description"]
    (tmp_path / "log.yaml").write_text("")
    running = [
        subprocess.Popen([*command, f"entry {number}"], cwd=tmp_path, stdout=subprocess.DEVNULL) for number in range(6)
    ]
    assert [one.wait(60) for one in running] == [0] * 6
    text = (tmp_path / "log.yaml").read_text()
    assert all(f"entry {number}" in text for number in range(6))
