"""The reference's verdicts, rows and merges on the real change log and its real history."""

import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prony.base.errors import ConfigError
from prony.cli.main import main
from prony.spec.changelog.document import Source
from prony.spec.changelog.entry import RefusedError
from prony.spec.changelog.merge import resolve

SHARED = Path(__file__).resolve().parents[3] / "shared"
GOLDEN = SHARED / "golden/changelog"
CASES = json.loads((GOLDEN / "index.json").read_text()) if GOLDEN.is_dir() else []
MERGES = json.loads((GOLDEN / "resolve_conflict.json").read_text()) if GOLDEN.is_dir() else []
RUNS = [(case, run) for case in CASES for run in case["runs"]]
# Part of the reference's sentence: our rules that say so, or words of ours where an error has no rule.
BLANKS = {"changelog-missing-blank", "changelog-extra-blank", "changelog-separator"}
MEANINGS: dict[str, set[str]] = {
    "entries are immutable": {"changelog-edited", "changelog-inserted", "changelog-deleted"},
    "changed historical": {"changelog-history-bytes"},
    "new PR entry must use": {"changelog-link"},
    "invalid pr-link: 'XXX'": {"changelog-placeholder"},
    "contains CR": {"changelog-cr"},
    "contains tabs": {"changelog-tab"},
    "does not end with a newline": {"changelog-final-newline"},
    "separated from history": BLANKS,
    "exactly one empty separator": BLANKS,
    "type=extra_forbidden": {"changelog-unknown-field"},
    "fails ChangelogEntry validation": {"changelog-field"},
    "is not valid YAML": {"changelog-conflict"},
    "is not UTF-8": {"changelog-utf8"},
    "no changelog contribution remaining": {"all added entries already"},
    "conflicting pr-link for entry 2": {"corrected the link of entry 2"},
    "Config key 'no-such-config' not found": {"changelog-unknown-key", "'no-such-config' is no key"},
    "cannot share a sweep": {"changelog-append-only", "append-only and others are not"},
    "No additions found": {"changelog-no-change", "adds no entry"},
    "cannot use all-evals": {"append-only entries never run"},
    "Deletions are not allowed": {"an old entry is gone or was edited", "only links were corrected"},
    "'configs/amd-master.yaml' does not exist": {"configs/amd-master.yaml: no such file"},
    "can't decode byte 0xe9": {"can't decode byte 0xe9"},
    "extra_forbidden": {"entry 1: priority"},
    "list_type": {"entry 1: description"},
    "too_short": {"entry 1: config-keys"},
    "literal_error": {"entry 1: scenario-type"},
    "    ^": {"not YAML"},
}
BASE_MASTERS = {"r05": {"configs/nvidia-master.yaml": "cfg-016fdf3a366c.yaml.gz"}}


def stored(name: str) -> bytes:
    """A file that the index names, from its data or beside it."""
    path = SHARED / name if name.startswith("data/") else GOLDEN / name
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


@dataclass
class Files:
    """One case as files of a folder, and the options that name them."""

    base: Path
    head: Path
    configs: list[str]

    @property
    def versions(self) -> list[str]:
        return ["--base", str(self.base), "--head", str(self.head)]


def written(case: dict[str, Any], folder: Path) -> Files:
    """Write a case's files; configs that the commit did not have stay missing."""
    base = stored(case["base"])
    head = case["head"]
    if "file" in head:
        new = stored(head["file"])
    else:
        new = base[: head["keep_prefix"]] + head["middle_latin1"].encode("latin-1")
        new += base[len(base) - head["keep_suffix"] :]
    (folder / "base.yaml").write_bytes(base)
    (folder / "head.yaml").write_bytes(new)
    for name, source in case["configs"].items():
        for where, chosen in (("head", source), ("base", BASE_MASTERS.get(case["case"], {}).get(name, source))):
            path = folder / where / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if chosen:
                path.write_bytes(stored(chosen))
    masters = ("configs/amd-master.yaml", "configs/nvidia-master.yaml")
    options = ["--config-files", *(str(folder / "head" / name) for name in masters)]
    options += ["--runner-config", str(folder / "head/configs/runners.yaml")]
    if case["case"] in BASE_MASTERS:
        options += ["--base-config-files", *(str(folder / "base" / name) for name in masters)]
    return Files(folder / "base.yaml", folder / "head.yaml", options)


def pr_of(run: dict[str, Any]) -> list[str]:
    return [] if run["pr"] is None else ["--pr", str(run["pr"])]


def meaning(sentence: str) -> set[str]:
    """What ours must be where the reference says this."""
    return next(ours for part, ours in MEANINGS.items() if part in sentence)


def says(text: str, sentence: str) -> bool:
    """Whether a text of ours tells what a sentence of the reference tells."""
    return any(words in text for words in meaning(sentence))


def test_all_cases_are_there(shared: Path) -> None:
    assert (len(CASES), len(RUNS), len(MERGES)) == (35, 50, 7)


@pytest.mark.parametrize(("case", "run"), RUNS, ids=[f"{case['case']}{''.join(run['flags'])}" for case, run in RUNS])
def test_a_change_selects_the_reference_rows(
    case: dict[str, Any], run: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = written(case, tmp_path)
    code = main(["changelog", "select", *files.versions, *files.configs, *pr_of(run), *run["flags"]])
    out, told = capfd.readouterr()
    assert code == (2 if run["process_exit"] else 0)
    if run["process_exit"]:
        assert says(told, run["process_error"]), told
    else:
        name = "".join(flag.replace("--", "+") for flag in run["flags"])
        golden = json.loads(stored(f"{case['case']}{name}.process.json.gz"))
        ours = json.loads(out)
        for side in (golden, ours):
            del side["changelog_metadata"]["base_ref"], side["changelog_metadata"]["head_ref"]
        assert ours == golden
        assert json.dumps(ours) == json.dumps(golden), "the order of fields and buckets"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_the_gate_follows_the_strict_rules_and_selection(
    case: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = case["runs"][0]
    files = written(case, tmp_path)
    code = main(["changelog", "check", *files.versions, *files.configs, *pr_of(run), "--json"])
    captured = capfd.readouterr()
    correction_only = run.get("strict_msg", "").startswith("OK additions=0 corrections=1")
    accepted = run["strict_exit"] == 0 and (run["process_exit"] == 0 or correction_only)
    assert code == (0 if accepted else 2), captured
    if accepted:
        return
    sentence = run["strict_msg"] if run["strict_exit"] else run["process_error"]
    if not captured.out:
        assert says(captured.err, run["process_error"]), captured.err
        return
    findings = json.loads(captured.out)["findings"]
    assert findings[0]["rule"] in meaning(sentence), findings
    for finding in findings:
        assert finding["where"]["file"] and finding["message"] and finding["fix"], finding


@pytest.mark.parametrize("case", [c for c in CASES if c["runs"][0].get("canon_msg")], ids=lambda case: case["case"])
def test_canonical_links_are_the_reference_bytes(
    case: dict[str, Any], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run = case["runs"][0]
    files = written(case, tmp_path)
    code = main(["changelog", "canonicalize", *files.versions, *pr_of(run)])
    out = capfdbinary.readouterr().out
    assert code == (2 if run["canon_exit"] else 0)
    if not run["canon_exit"]:
        assert hashlib.sha256(out).hexdigest() == run["canon_sha256"]


@pytest.mark.parametrize("case", MERGES, ids=lambda case: case["name"])
def test_a_conflict_is_resolved_to_the_reference_bytes(case: dict[str, Any]) -> None:
    base, ours, theirs = (Source(case[side].encode(), f"{side}.yaml") for side in ("base", "pr", "main"))
    if "error" in case:
        with pytest.raises(ConfigError) as refused:
            resolve(base, ours, theirs, case["pr_number"])
        rule = refused.value.rule if isinstance(refused.value, RefusedError) else ""
        assert rule in meaning(case["error"]) or says(refused.value.message, case["error"]), refused.value
        assert refused.value.message.startswith(("pr.yaml:", "main.yaml:")) and refused.value.fix
    else:
        assert resolve(base, ours, theirs, case["pr_number"]) == case["result"].encode()
