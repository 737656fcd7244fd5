"""Runner labels and hardware."""

from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.base.yamldoc import parse_yaml
from prony.spec.runners import load_runners, read_runners

HARDWARE = "labels:\n  a: [x]\nhardware:\n  a: "


def test_the_real_runners_file_is_read_whole(shared: Path) -> None:
    runners = load_runners(shared / "data/inferencex/configs/runners.yaml")
    assert len(runners.labels) == 37
    assert len({node for label in runners.labels for node in label.nodes}) == 132
    known = [label for label in runners.labels if label.hardware]
    assert len(known) + len(runners.without_nodes) == 16


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("label:\n  a: [x]\n", "r.yaml:1 runners: 'label' is not a field (did you mean 'labels'?)"),
        ("labels:\n  a: []\n", "r.yaml:2 runners: 'labels.a'"),
        ("labels:\n  a: x\n", "r.yaml:2 runners: 'labels.a'"),
        (HARDWARE + "{gpus-per-node: 8}\n", "r.yaml:4 runners: 'available-cpu-dram-mib' is missing"),
        (HARDWARE + "{gpus-per-node: 0, available-cpu-dram-mib: 1}\n", "r.yaml:4"),
    ],
)
def test_a_fault_names_its_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_runners(parse_yaml(text, "r.yaml"))
    assert words in str(caught.value)
