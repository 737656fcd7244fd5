"""The commands as they are typed: entries written, changes mended, rows explained."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from prony.cli.main import main
from tests.spec.changelog.test_rules import BASE, GOOD, LINK, entry

CONFIG = """
key-a:
  image: i:1
  model: org/m
  model-prefix: m
  precision: fp8
  framework: vllm
  runner: h200
  multinode: false
  scenarios:
    fixed-seq-len:
      - isl: 8192
        osl: 1024
        search-space:
          - {tp: 8, conc-list: [CONC]}
key-b:
  image: i:1
  model: org/m
  model-prefix: m
  precision: fp4
  framework: vllm
  runner: h200
  multinode: false
  scenarios:
    fixed-seq-len:
      - isl: 1024
        osl: 1024
        search-space:
          - {tp: 4, conc-list: [1]}
"""


class Folder:
    """A change log, its change, and configs of both sides."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("base.yaml", BASE)
        self.write("runners.yaml", "labels: {h200: [n1]}\n")
        self.configs("16, 32, 64", "16, 32, 64")

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)

    def configs(self, base: str, head: str) -> None:
        self.write("old.yaml", CONFIG.replace("CONC", base))
        self.write("new.yaml", CONFIG.replace("CONC", head))

    def run(self, verb: str, *options: str) -> int:
        files = ["--base", f"{self.path}/base.yaml", "--head", f"{self.path}/head.yaml", "--pr", "9"]
        configs = ["--config-files", f"{self.path}/new.yaml", "--base-config-files", f"{self.path}/old.yaml"]
        return main(["changelog", verb, *options, *files, *configs])


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def append(folder: Folder, *extra: str, key: str = "key-a") -> None:
    folder.write("head.yaml", "\n".join([BASE, *(entry(key, "XXX", text) for text in extra or ("",))]))


def test_an_entry_that_is_added_passes_the_gate_and_a_second_one_too(folder: Folder) -> None:
    folder.write("head.yaml", BASE)
    options = ["--file", f"{folder.path}/head.yaml", "--config-files", f"{folder.path}/new.yaml"]
    assert main(["changelog", "add", "--keys", "key-*", "--description", 'a "b": #c', "*d", *options, "--pr", "9"]) == 0
    assert main(["changelog", "add", "--keys", "key-b", "--description", "x", "--evals-only", *options]) == 0
    assert folder.run("check") == 0
    first, second = yaml.safe_load((folder.path / "head.yaml").read_text())[2:]
    assert first == {"config-keys": ["key-*"], "description": ['a "b": #c', "*d"], "pr-link": f"{LINK}9"}
    assert second["pr-link"] == f"{LINK}XXX" and second["evals-only"] is True


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--keys", "key-c", "--description", "x"], "'key-c' is no key"),
        (
            ["--keys", "key-a", "--description", "x", "--append-only", "--evals-only"],
            "'append-only' excludes evals-only",
        ),
    ],
)
def test_an_entry_that_could_not_run_is_not_written(
    folder: Folder, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write("head.yaml", BASE)
    options = ["--file", f"{folder.path}/head.yaml", "--config-files", f"{folder.path}/new.yaml"]
    assert main(["changelog", "add", *words, *options]) == 2
    assert told in capsys.readouterr().err
    assert (folder.path / "head.yaml").read_text() == BASE


def test_a_fork_gets_links_of_its_own_project(folder: Folder) -> None:
    folder.write("log.yaml", entry("a", "https://github.com/org/fork/pull/1"))
    assert main(["changelog", "add", "--keys", "b", "--description", "x", "--file", f"{folder.path}/log.yaml"]) == 0
    assert (folder.path / "log.yaml").read_text().endswith("pr-link: https://github.com/org/fork/pull/XXX\n")


def test_a_repair_is_written_where_it_is_asked_for(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    broken = (BASE + entry("key-a", f"{LINK}8")).removesuffix("\n")
    folder.write("head.yaml", broken)
    assert folder.run("check", "--json") == 2
    rules = [finding["rule"] for finding in json.loads(capsys.readouterr().out)["findings"]]
    assert rules == ["changelog-missing-blank", "changelog-final-newline", "changelog-link"]
    assert folder.run("check", "--fix", "--out", f"{folder.path}/mended.yaml") == 0
    assert (folder.path / "head.yaml").read_text() == broken
    assert (folder.path / "mended.yaml").read_text() == f"{BASE}\n{entry('key-a', f'{LINK}9')}"
    assert folder.run("check", "--fix") == 0
    assert (folder.path / "head.yaml").read_text() == (folder.path / "mended.yaml").read_text()


def test_append_only_runs_what_the_base_configs_do_not_have(folder: Folder, capfd: pytest.CaptureFixture[str]) -> None:
    append(folder, "  append-only: true\n")
    folder.configs("16, 32", "16, 32, 64")
    assert folder.run("check") == 0
    capfd.readouterr()
    assert folder.run("select") == 0
    buckets = json.loads(capfd.readouterr().out)
    assert [row["conc"] for row in buckets["single_node"]["8k1k"]] == [64] and buckets["evals"] == []


@pytest.mark.parametrize(
    ("base", "head", "told"),
    [
        ("16, 32", "16, 64", "concurrency 32 of the base is gone"),
        ("16, 32", "16, 32", "no more points than the base"),
        (
            "16, 32]}\n          - {tp: 4, conc-list: [16",
            "16, 32, 64",
            "a recipe that the base generates is gone or differs",
        ),
    ],
)
def test_append_only_that_changes_what_exists_is_refused(
    folder: Folder, base: str, head: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder, "  append-only: true\n")
    folder.configs(base, head)
    assert folder.run("check") == 2
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("precision: fp4", "precision: int4", "no added entry names differ from the base: key-b"),
        ("key-a:", "key-z:", "configs that the base has; it lacks key-a"),
        ("image: i:1\n", "image: i:0\n", "no added entry names differ"),
    ],
)
def test_append_only_keeps_to_its_scope(
    folder: Folder, old: str, new: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder, "  append-only: true\n")
    folder.configs("16", "16, 32")
    folder.write("old.yaml", (folder.path / "old.yaml").read_text().replace(old, new))
    assert folder.run("check") == 2
    assert told in capsys.readouterr().out


def test_a_new_image_is_no_point_of_the_old_curve(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    append(folder, "  append-only: true\n")
    folder.configs("16", "16]}\n          - {tp: 4, conc-list: [16")
    assert folder.run("check") == 0
    folder.write("old.yaml", (folder.path / "old.yaml").read_text().replace("image: i:1", "image: i:0", 1))
    assert folder.run("check") == 2
    assert "is gone or differs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "flags", "key", "told"),
    [
        ("", [], "key-a", "key-a: 3 benchmark rows, 2 eval rows"),
        ("", ["--trim-conc"], "key-a", "key-a: 1 benchmark row, 2 eval rows"),
        ("", ["--all-evals"], "key-a", "key-a: 3 benchmark rows, 3 eval rows"),
        ("  evals-only: true\n", [], "key-a", "no benchmarks: the entry is evals-only"),
        ("  scenario-type:\n    - agentic-coding\n", [], "key-a", "(the config has none for it)"),
        ("", [], "key-b", "no added entry names it"),
    ],
)
def test_a_key_is_explained(
    folder: Folder, extra: str, flags: list[str], key: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder, extra)
    assert folder.run("explain", key, *flags) == 0
    assert told in capsys.readouterr().out


def test_a_key_to_explain_that_no_config_has_is_refused_with_near_names(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder)
    assert folder.run("explain", "key-x") == 2
    err = capsys.readouterr().err
    assert "'key-x' is no key" in err and "key-a" in err and "key-b" in err


def test_an_explanation_names_only_scenarios_of_the_key_and_trims_only_benchmarks(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder)
    assert folder.run("explain", "key-a", "--trim-conc") == 0
    out = capsys.readouterr().out
    assert "agentic-coding" not in out and "--trim-conc" in out
    append(folder, "  evals-only: true\n")
    assert folder.run("explain", "key-a", "--trim-conc") == 0
    assert "--trim-conc" not in capsys.readouterr().out


def test_a_corrected_link_is_told_to_run_nothing(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("head.yaml", BASE.replace(f"{LINK}2", f"{LINK}3"))
    assert folder.run("select") == 2
    err = capsys.readouterr().err
    assert "only links were corrected; nothing to run" in err and "is gone" not in err


def test_an_unknown_key_of_a_selection_is_told_with_its_line(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    append(folder, key="key-x")
    assert folder.run("select") == 2
    assert f"head.yaml:{BASE.count(chr(10)) + 3}: 'key-x' is no key" in capsys.readouterr().err


def test_advice_of_commands_without_fix_names_one_that_works(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = f"{folder.path}/base.yaml", f"{folder.path}/head.yaml"
    advised = f"run 'prony changelog check --base {base} --head {head} --pr 9 --fix'"
    commands = (
        ["select", "--base", base, "--head", head, "--config-files", f"{folder.path}/new.yaml"],
        ["canonicalize", "--base", base, "--head", head],
        ["resolve", "--base", base, "--ours", head, "--theirs", base],
    )
    for command in commands:
        folder.write("head.yaml", f"{BASE}\n{entry('key-a', f'{LINK}8')}")
        main(["changelog", *command, "--pr", "9"])
        assert advised in capsys.readouterr().err, command
        assert main(shlex.split(advised.removeprefix("run '").removesuffix("'"))[1:]) == 0
        capsys.readouterr()


def test_keys_are_looked_up_in_the_configs_beside_the_change_log(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path / "configs").mkdir()
    folder.write("configs/nvidia-master.yaml", CONFIG.replace("CONC", "16"))
    folder.write("configs/amd-master.yaml", CONFIG.replace("CONC", "16").replace("key-", "amd-"))
    folder.write("perf-changelog.yaml", BASE)
    words = ["--description", "x", "--file", f"{folder.path}/perf-changelog.yaml"]
    assert main(["changelog", "add", "--keys", "nope", *words]) == 2
    assert "'nope' is no key" in capsys.readouterr().err
    assert (folder.path / "perf-changelog.yaml").read_text() == BASE
    assert main(["changelog", "add", "--keys", "key-a", "amd-b", *words]) == 0


def test_a_repair_says_line_by_line_what_it_did(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    head = f"{folder.path}/head.yaml"
    new = BASE.count("\n") + 1
    cases = (
        (f"{BASE}{entry('key-a', f'{LINK}8')}", [f"{new}: blank line added", f"{new + 5}: link 8 → 9"]),
        (f"{BASE}\n{entry('key-a', f'{LINK}8')}\n", [f"{new + 5}: link 8 → 9", f"{new + 6}: blank line removed"]),
        (f"{BASE}\n{entry('key-a', 'XXX')}"[:-1], [f"{new + 5}: final newline added"]),
        (f"{entry('key-a', 'XXX')}\n{BASE}", [f"{new + 1}: entry moved here from line 1"]),
    )
    for text, done in cases:
        folder.write("head.yaml", text)
        assert folder.run("check", "--fix") == 0
        told = capsys.readouterr().out.splitlines()
        assert told[:-1] == [f"{head}:{line}" for line in done]


def test_an_overlap_is_explained_and_runs_once(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    append(folder, "", "")
    assert folder.run("explain", "key-a") == 0
    out = capsys.readouterr().out
    assert "key-a: 3 benchmark rows, 2 eval rows" in out and "earlier entries of this change ask for them" in out


def test_two_versions_are_needed_and_one_way_of_naming_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["changelog", "check"]) == 2
    assert main(["changelog", "check", "--base", "a", "--head-ref", "b"]) == 2
    assert main(["changelog", "check", "--base", "a"]) == 2
    assert "name the other file too" in capsys.readouterr().err


def test_the_gate_starts_without_reading_the_masters_code(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "head.yaml").write_text(GOOD)
    code = (
        "import sys; from prony.cli.main import main; "
        "main(['changelog', 'check', '--base', 'base.yaml', '--head', 'head.yaml', '--pr', '9']); "
        "sys.exit(any(name in sys.modules for name in ('prony.spec.master', 'numpy', 'rich', 'sqlalchemy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0
