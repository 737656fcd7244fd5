import pytest
import yaml

from prony.base.errors import ConfigError
from prony.facts.skus import SKUS, sku, sku_of_runner


@pytest.mark.parametrize(
    ("label", "key"),
    [
        ("h200", "h200"),
        ("cluster:b200-dgxc", "b200"),
        ("gb300-nv_3", "gb300"),
        ("mi355x-disagg", "mi355x"),
        ("h100-dgxc-slurm_07", "h100"),
        ("rtx6000pro-lat_0", "rtx6000pro"),
        ("CPU", "cpu"),
    ],
)
def test_a_runner_label_names_its_sku(label: str, key: str) -> None:
    assert sku_of_runner(label) == key


def test_an_unknown_runner_lists_what_is_known() -> None:
    with pytest.raises(ConfigError, match="'tpuv7' is not a known SKU") as caught:
        sku_of_runner("tpuv7_0")
    assert "mi355x" in caught.value.allowed and "gb300" in caught.value.allowed


def test_every_runner_of_the_reference_names_a_known_sku(shared) -> None:  # type: ignore[no-untyped-def]
    labels = yaml.safe_load((shared / "data/inferencex/configs/runners.yaml").read_text())["labels"]
    names = {*labels, *(name for machines in labels.values() for name in machines)}
    assert all(sku(sku_of_runner(name)) for name in names)


def test_every_sku_has_a_source_and_a_key_of_its_own() -> None:
    assert all(found.source and found.label for found in SKUS)
    assert len({found.key for found in SKUS}) == len(SKUS)
