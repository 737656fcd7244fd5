"""`prony check` says which points of a change cannot run, before a device is booked for them."""

import json
from pathlib import Path

import pytest

from prony.cli.main import main
from tests.gate.kit import Repo, real_repo

AMD = "configs/amd-master.yaml"
OLD, NEW = "amd/Qwen3.5-397B-A17B-MXFP4", "amd/Qwen3.5-397B-A17B-MXFP4-AttnFP8-V2"
KEYS = ("qwen3.5-fp4-mi355x-sglang", "qwen3.5-fp4-mi355x-sglang-mtp")


@pytest.fixture
def repo(shared: Path, tmp_path: Path) -> Repo:
    """The real configs on branch `work`, on which two keys serve the new checkpoint of seed 003."""
    repo = real_repo(shared, tmp_path / "checkout", entries=5)
    for key in KEYS:
        text = (repo.root / AMD).read_text()
        start = text.index(f"\n{key}:\n")
        (repo.root / AMD).write_text(text[:start] + text[start:].replace(f"model: {OLD}\n", f"model: {NEW}\n", 1))
    return repo


def found(repo: Repo, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, object]]]:
    capsys.readouterr()
    code = main(["check", "--repo", str(repo.root), "--base", "main", "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return code, [finding for finding in findings if finding["rule"] == "aiter-bpreshuffle-n64"]


def test_a_checkpoint_whose_shards_have_no_kernel_stands_in_the_way(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    code, refused = found(repo, capsys)
    assert code == 2
    assert [finding["severity"] for finding in refused] == ["error", "error"]
    for finding, key in zip(refused, KEYS, strict=True):
        assert str(finding["message"]).startswith(f"{key} TP4 (3 points, conc 4 8 16)")
        assert "33484262630" in str(finding["evidence"])


def test_without_the_band_nothing_stands_in_the_way(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    text = (repo.root / AMD).read_text()
    for mark in ("", ", spec-decoding: mtp"):
        band = f"      - {{ tp: 4, conc-start: 4, conc-end: 16{mark} }}\n"
        for key in KEYS:
            start = text.index(f"\n{key}:\n")
            end = text.find("\n\n", start)
            text = text[:start] + text[start:end].replace(band.rstrip("\n"), "") + text[end:]
    (repo.root / AMD).write_text(text)
    code, refused = found(repo, capsys)
    assert (code, refused) == (0, [])


def test_a_recipe_beside_the_configs_that_is_no_recipe_is_told(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    folder = repo.root / "configs/recipes"
    folder.mkdir()
    (folder / "odd.yaml").write_text("schema: 1\nengin: sglang\n")
    assert main(["check", "--repo", str(repo.root), "--base", "main"]) == 2
    told = capsys.readouterr().out
    assert "error [recipe-invalid]" in told and "odd.yaml:2" in told
