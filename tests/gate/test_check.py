"""The check before a push, in real repositories made of the real files."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from prony.cli.main import main
from prony.gate.steps import classes_of
from tests.gate.kit import CHANGELOG, NEW_KEY, Repo, real_repo

AMD = "configs/amd-master.yaml"
LINK = "https://github.com/SemiAnalysisAI/InferenceX/pull/"
OLD_KEY = "dsr1-fp8-mi300x-sglang"


def entry(*keys: str, link: str = f"{LINK}XXX") -> str:
    """Return a change log entry as it is appended."""
    lines = "".join(f"    - {key}\n" for key in keys)
    return f'\n- config-keys:\n{lines}  description:\n    - "Say why"\n  pr-link: {link}\n'


@pytest.fixture
def repo(shared: Path, tmp_path: Path) -> Repo:
    """The real configs on branch `work`, with the end of the real change log."""
    return real_repo(shared, tmp_path / "checkout", entries=20)


@pytest.fixture
def check(repo: Repo, capsys: pytest.CaptureFixture[str]) -> "Check":
    """Run `prony check` in the repository."""
    return Check(repo, capsys)


class Check:
    """Runs the check and reads what it says."""

    def __init__(self, repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
        self.repo = repo
        self.capsys = capsys

    def __call__(self, *words: str) -> tuple[int, dict[str, Any], list[str]]:
        """Return exit code, report and the rules of its findings."""
        self.capsys.readouterr()
        code = main(["check", "--repo", str(self.repo.root), "--json", *words])
        report = json.loads(self.capsys.readouterr().out)
        return code, report, [finding["rule"] for finding in report["findings"]]

    def text(self, *words: str) -> str:
        """Return what a person reads."""
        self.capsys.readouterr()
        main(["check", "--repo", str(self.repo.root), *words])
        return self.capsys.readouterr().out


def test_a_new_key_with_its_entry_is_ready_to_push_with_the_whole_real_change_log(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = real_repo(shared, tmp_path / "whole")
    check = Check(repo, capsys)
    repo.append(AMD, "\n" + NEW_KEY)
    repo.append(CHANGELOG, entry("dsr1-fp4-b200-sglang-new"))
    repo.commit("add a key")
    code, report, rules = check()
    assert (code, rules, report["classes"]) == (0, [], ["config"])
    said = check.text()
    assert "8 added" in said and "GPU-hours (an upper bound" in said
    assert "next: push, then ask for a sweep: 10 jobs" in said


def test_old_faults_of_the_base_are_silent(check: Check) -> None:
    code, report, rules = check()
    assert (code, rules, report["known"]) == (0, [], 37)
    assert report["next"] == {"text": "nothing differs from the base: change something first", "command": ""}


def test_what_is_not_committed_yet_is_checked_too(repo: Repo, check: Check) -> None:
    repo.append(AMD, "\n" + NEW_KEY.replace("runner: b200", "runner: b2000"))
    code, report, rules = check()
    assert (code, report["uncommitted"]) == (2, 1)
    assert rules == ["runner-unknown", "changelog-unasked"]


def test_new_points_without_an_entry_say_that_nothing_will_run(repo: Repo, check: Check) -> None:
    repo.append(AMD, "\n" + NEW_KEY)
    code, report, rules = check()
    assert (code, rules) == (0, ["changelog-unasked"])
    assert "prony changelog add --keys dsr1-fp4-b200-sglang-new" in str(report["next"])


def test_an_entry_that_names_the_key_before_its_renaming_is_told_the_new_name(repo: Repo, check: Check) -> None:
    repo.replace(AMD, f"{OLD_KEY}:\n", f"{OLD_KEY}-v2:\n")
    repo.append(CHANGELOG, entry(OLD_KEY))
    repo.append("notes.md", f"see {OLD_KEY}, not {OLD_KEY}-v2\nand {OLD_KEY}-v2\n")
    repo.commit("rename a key")
    code, report, rules = check()
    assert (code, rules) == (2, ["name-dangling", "name-dangling"])
    first, second = report["findings"]
    assert f"renamed it to '{OLD_KEY}-v2'" in first["message"]
    lines = (repo.root / CHANGELOG).read_text().splitlines()
    assert lines[first["where"]["line"] - 1] == f"    - {OLD_KEY}"
    assert second["where"] == {"file": "notes.md", "line": 1}


def test_a_key_that_main_changed_meanwhile_is_named(repo: Repo, check: Check) -> None:
    repo.append(AMD, "\n" + NEW_KEY)
    repo.append(CHANGELOG, entry("dsr1-fp4-b200-sglang-new"))
    repo.commit("ours")
    repo.git("checkout", "-q", "main")
    repo.append(AMD, "\n" + NEW_KEY.replace("v0.5.16", "v0.5.15"))
    repo.append(CHANGELOG, entry("dsr1-fp4-b200-sglang-new", link=f"{LINK}12"))
    repo.commit("theirs")
    repo.git("checkout", "-q", "work")
    code, report, rules = check("--base", "main")
    assert (code, rules) == (0, ["base-moved", "base-changelog"])
    assert report["next"]["command"] == "git merge main" and "merge driver" in report["next"]["text"]
    moved = report["findings"][0]
    assert "the base branch added this key too" in moved["message"] and "theirs" in moved["evidence"]


def test_fix_mends_the_change_log(repo: Repo, check: Check) -> None:
    repo.append(AMD, "\n" + NEW_KEY)
    repo.append(CHANGELOG, "\n" + entry("dsr1-fp4-b200-sglang-new", link=f"{LINK}2000").rstrip("\n"))
    code, _, rules = check("--pr", "2611")
    assert code == 2 and any(rule.startswith("changelog-") for rule in rules)
    code, report, rules = check("--pr", "2611", "--fix")
    assert (code, rules) == (0, []) and report["mended"]
    assert (repo.root / CHANGELOG).read_text().endswith("pull/2611\n")


def test_an_entry_for_a_key_with_a_fault_is_not_told_that_the_key_is_missing(repo: Repo, check: Check) -> None:
    repo.append(AMD, "\n" + NEW_KEY.replace("conc-list", "conc-lst"))
    repo.append(CHANGELOG, entry("dsr1-fp4-b200-sglang-new"))
    assert check()[2] == ["schema"]


def test_a_master_that_is_no_yaml_is_told_and_no_key_counts_as_removed(repo: Repo, check: Check) -> None:
    repo.append(AMD, "broken: [1, 2\n")
    code, report, rules = check()
    assert (code, rules, report["diff"]) == (2, ["yaml"], None)
    assert "not compared" in check.text()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("benchmarks/single_node/agentic/x.sh", "recipe"),
        ("utils/process_result.py", "harness"),
        ("runners/launch_h200-cw.sh", "harness"),
        ("docs/x.md", "docs"),
        ("configs/runners.yaml", "config"),
    ],
)
def test_the_class_of_a_change_comes_from_its_paths(path: str, kind: str) -> None:
    assert classes_of([path], ("configs/x.yaml",), "configs/runners.yaml", "log.yaml") == (kind,)


def test_history_without_a_common_commit_and_unknown_refs_are_refused(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--repo", str(repo.root), "--base", "nowhere"]) == 2
    assert "'nowhere' names no commit" in capsys.readouterr().err
    repo.git("checkout", "-q", "--orphan", "island")
    repo.commit("alone")
    assert main(["check", "--repo", str(repo.root), "--base", "main"]) == 2
    assert "no common commit" in capsys.readouterr().err


def test_a_folder_outside_git_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--repo", str(tmp_path)]) == 2
    assert "not in a git work tree" in capsys.readouterr().err


def test_a_branch_that_only_adds_an_entry_is_priced_by_the_rows_it_triggers_evals_included(
    repo: Repo, check: Check
) -> None:
    repo.append(CHANGELOG, entry("dsr1-fp8-h200-*"))
    code, report, _ = check()
    asked = report["sweep"]
    assert (code, asked["benchmarks"], asked["evals"], asked["booking"]["jobs"]) == (0, 50, 29, 79)
    assert asked["booking"]["gpu_hours"] >= 79 * 8 * 480 / 60
    said = check.text()
    assert "50 benchmark rows, 29 evals: 79 jobs, at most" in said
    assert "next: commit 1 file, then push, then ask for a sweep: 79 jobs" in said


@pytest.mark.parametrize("fault", ["crlf", "top"])
def test_an_entry_with_a_mendable_fault_asks_for_its_key_all_the_same(repo: Repo, check: Check, fault: str) -> None:
    repo.append(AMD, "\n" + NEW_KEY)
    log = repo.root / CHANGELOG
    new = entry("dsr1-fp4-b200-sglang-new")
    if fault == "crlf":
        log.write_bytes((log.read_text() + new).replace("\n", "\r\n").encode())
    else:
        log.write_text(new.lstrip("\n") + "\n" + log.read_text())
    code, report, rules = check()
    assert code == 2 and "changelog-unasked" not in rules
    assert report["sweep"]["benchmarks"] == 8


def test_the_next_command_typed_as_it_stands_checks_the_same_thing_and_mends_it(repo: Repo, check: Check) -> None:
    repo.append(AMD, "\n" + NEW_KEY)
    repo.append(CHANGELOG, entry("dsr1-fp4-b200-sglang-new", link=f"{LINK}2000"))
    code, report, _ = check("--base", "main", "--pr", "2607")
    assert code == 2
    command = report["next"]["command"]
    assert command == f"prony check --base main --repo {shlex.quote(str(repo.root))} --pr 2607 --fix"
    assert main(shlex.split(command)[1:]) == 0
    assert (repo.root / CHANGELOG).read_text().endswith("pull/2607\n")


def test_a_link_is_not_called_right_while_the_number_of_the_pull_request_is_unknown(repo: Repo, check: Check) -> None:
    repo.append(CHANGELOG, entry("dsr1-fp8-h200-*", link=f"{LINK}2607"))
    code, report, rules = check()
    assert (code, rules) == (0, ["changelog-link-unjudged"])
    assert "not judged without --pr N" in report["findings"][0]["message"]
    assert report["next"]["command"].endswith("--pr N")
    assert check("--pr", "2607")[2] == []


def test_names_left_dangling_are_mended_before_a_push(repo: Repo, check: Check) -> None:
    repo.append("notes.md", f"see {OLD_KEY}\n")
    repo.replace(AMD, f"{OLD_KEY}:\n", f"{OLD_KEY}-v2:\n")
    repo.commit("rename a key")
    code, report, rules = check()
    assert (code, rules) == (0, ["name-dangling"])
    assert report["next"]["text"] == "mend 1 name left dangling, then check again"


def test_an_unfinished_merge_is_an_error_and_its_change_log_is_sent_to_the_merge_driver(
    repo: Repo, check: Check
) -> None:
    repo.append(CHANGELOG, entry(OLD_KEY))
    repo.commit("ours")
    repo.git("checkout", "-q", "main")
    repo.append(CHANGELOG, entry(OLD_KEY, link=f"{LINK}12"))
    repo.commit("theirs")
    repo.git("checkout", "-q", "work")
    with pytest.raises(subprocess.CalledProcessError):
        repo.git("merge", "main")
    code, report, rules = check()
    assert code == 2 and rules[:2] == ["merge-unfinished", "changelog-conflict"]
    assert report["next"]["text"].startswith("finish the merge")
    fix = report["findings"][1]["fix"]
    assert "merge driver" in fix and "docs/how-to/changelog.md" in fix and "no rebase" in fix


def test_the_command_that_shows_old_findings_shows_them(
    repo: Repo, check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    said = check.text()
    command = said.partition("old ones in lint (")[2].partition(" shows them)")[0]
    command = command[command.index("prony lint") :]
    main(shlex.split(command)[1:])
    assert "208 keys" in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["twice", "runner"])
def test_no_hours_and_no_renames_are_told_while_it_is_open_what_a_key_says(
    repo: Repo, check: Check, fault: str
) -> None:
    if fault == "twice":
        repo.append(AMD, "\n" + NEW_KEY + "\n" + NEW_KEY)
    else:
        repo.append(AMD, "\n" + NEW_KEY.replace("runner: b200", "runner: b2000"))
    repo.append(CHANGELOG, entry("dsr1-fp4-b200-sglang-new"))
    code, report, _ = check()
    assert (code, report["diff"], report["sweep"]) == (2, None, None)
    said = check.text()
    assert "not computed until the errors above are mended" in said
    assert "at most" not in said and "renamed" not in said


@pytest.mark.parametrize(("path", "kind"), [("benchmarks/x.sh", "recipe"), ("configs/runners.yaml", "config")])
def test_a_branch_that_touches_one_file_has_the_class_of_that_file(
    repo: Repo, check: Check, path: str, kind: str
) -> None:
    (repo.root / path).parent.mkdir(exist_ok=True)
    repo.append(path, "\n# a comment\n")
    repo.commit("touch one file")
    code, report, _ = check()
    assert (code, report["classes"], report["changed"]) == (0, [kind], [path])
