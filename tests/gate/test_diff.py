"""Matrix diffs: what happens to each point, and what it may book."""

import gzip
import json
from pathlib import Path

import pytest

from prony.cli.main import main
from prony.gate.diff import diff
from prony.gate.document import Config
from tests.gate.faulty import MASTER, RUNNERS
from tests.gate.kit import NEW_KEY, config, real_config, real_repo

BASE = config(MASTER)


def test_equal_configs_differ_in_nothing() -> None:
    found = diff(BASE, config("# a comment\n" + MASTER))
    assert (found.added, found.removed, found.altered, found.renamed) == ((), (), (), ())
    assert (found.unchanged, found.booking.jobs) == (12, 0)


def test_a_new_image_alters_points_and_a_new_concurrency_adds_one() -> None:
    master = MASTER.replace("vllm-openai:v0.25.1", "vllm-openai:v0.26.0").replace(
        "conc-list: [4, 8]", "conc-list: [8, 16]"
    )
    found = diff(BASE, config(master))
    assert [(item.fields, item.after.concurrency) for item in found.altered] == [(("image",), 8)]
    assert [point.concurrency for point in found.added] == [16]
    assert [point.concurrency for point in found.removed] == [4]


def test_a_renamed_key_runs_nothing_again() -> None:
    found = diff(BASE, config(MASTER.replace("dsr1-fp4-b200-sglang:", "dsr1-fp4-b200-sglang-v2:")))
    assert len(found.renamed) == 8 and not found.to_run
    assert found.renamed[0].fields == ("config_key",)


def test_a_single_node_job_books_its_whole_node() -> None:
    found = diff(BASE, config(MASTER.replace("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 2, conc-list: [4, 8]}")))
    assert found.booking.jobs == 2
    assert found.booking.gpu_hours == pytest.approx(2 * 8 * 500 / 60)


def test_concurrencies_of_a_multi_node_entry_share_one_job_on_whole_nodes() -> None:
    found = diff(BASE, config(MASTER.replace("tensorrtllm-runtime:1.0", "tensorrtllm-runtime:1.1")))
    assert (len(found.altered), found.booking.jobs) == (2, 1)
    assert found.booking.gpu_hours == pytest.approx((8 + 8) * 480 / 60)


def test_a_key_that_is_not_valid_is_named_and_hides_no_other() -> None:
    found = diff(BASE, config(MASTER.replace("tp: 8, spec-decoding", "tp: no, spec-decoding")))
    assert found.not_expanded == ("kimik3-fp4-b200-vllm-agentic: not valid, see 'prony lint'",)
    assert (found.added, found.removed) == ((), ())


def test_a_full_run_of_the_real_files_books_one_job_per_row_of_the_reference(shared: Path) -> None:
    head = real_config(shared)
    found = diff(Config((), head.runners), head)
    assert found.booking.jobs == 1820
    assert found.booking.unknown_nodes == () and found.not_expanded == ()


def test_an_older_real_master_differs_in_some_keys_only(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.yaml"
    old.write_bytes(gzip.decompress((shared / "golden/changelog/cfg-016fdf3a366c.yaml.gz").read_bytes()))
    configs = shared / "data/inferencex/configs"
    runners = ["--runner-config", str(configs / "runners.yaml")]
    argv = ["matrix", "diff", str(old), str(configs / "nvidia-master.yaml"), *runners]
    assert main([*argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(found[name]) for name in ("added", "removed", "altered", "renamed")] == [31, 12, 9, 0]
    assert "upper bound" in found["gpu_hours_are"]
    assert main([*argv, "--markdown"]) == 0
    page = capsys.readouterr().out
    assert "31 added, 12 removed, 9 altered" in page and "GPU-hours (an upper bound" in page
    assert all(line.count("|") == 4 for line in page.splitlines() if line.startswith("| added"))


def test_two_refs_of_a_repository_are_compared(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = real_repo(shared, tmp_path)
    repo.append("configs/amd-master.yaml", "\n" + NEW_KEY)
    repo.commit("add a key")
    assert main(["matrix", "diff", "--repo", str(tmp_path), "main", "work"]) == 0
    out = capsys.readouterr().out
    assert "+ dsr1-fp4-b200-sglang-new 8192/1024 TP8  conc 4, 8, 16" in out
    assert "points: 8 added, 0 removed, 0 altered, 0 renamed" in out


def test_markdown_of_foreign_text_stays_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = MASTER.replace("lmsysorg/sglang:v0.5.16", '"a|b <img src=x> `c` @everyone"')
    for name, text in (("base.yaml", MASTER), ("head.yaml", bad), ("runners.yaml", RUNNERS)):
        (tmp_path / name).write_text(text)
    assert main(["matrix", "diff", str(tmp_path / "base.yaml"), str(tmp_path / "head.yaml"), "--markdown"]) == 0
    page = capsys.readouterr().out
    assert "<img" not in page and "@everyone" not in page and "a\\|b" in page


def test_points_of_a_key_that_cannot_be_expanded_are_neither_removed_nor_added() -> None:
    beyond_its_node = config(MASTER.replace("tp: 8, spec-decoding", "tp: 16, spec-decoding"))
    for base, head in ((BASE, beyond_its_node), (beyond_its_node, BASE)):
        found = diff(base, head)
        (told,) = found.not_expanded
        assert told.startswith("kimik3-fp4-b200-vllm-agentic cannot be expanded: ")
        assert (found.added, found.removed, found.altered, found.renamed) == ((), (), (), ())


def test_a_key_of_two_lines_stays_on_one_in_every_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runners.yaml").write_text(RUNNERS)
    (tmp_path / "base.yaml").write_text(MASTER)
    odd = MASTER.replace("dsr1-fp4-b200-sglang:", '"fine\\n+ forged-key 1/1 | `x`\\t":')
    (tmp_path / "head.yaml").write_text(odd.replace("concurrency", "concurrency"))
    for form in ([], ["--markdown"]):
        assert main(["matrix", "diff", str(tmp_path / "base.yaml"), str(tmp_path / "head.yaml"), *form]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert any("forged-key" in line for line in lines)
        assert not any(line.startswith("+ forged-key") for line in lines)
