"""Master configs: what is accepted, and how each fault is told."""

from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.base.yamldoc import parse_yaml
from prony.spec.master import SingleNode, load_master, read_master

GOOD = """\
k1:
  image: i:1
  model: org/m
  model-prefix: m
  precision: fp8
  framework: sglang
  runner: h200
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 128
      osl: 32
      search-space:
      - { tp: 4, conc-start: 4, conc-end: 100 }
      - { tp: 8, ep: 8, conc-list: [1, 2, 4], spec-decoding: mtp }
"""


def fault(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read_master(parse_yaml(text, "m.yaml"))
    return str(caught.value)


def test_a_range_doubles_and_ends_at_its_end() -> None:
    entry = read_master(parse_yaml(GOOD, "m.yaml"))[0].entry
    assert isinstance(entry, SingleNode) and entry.scenarios.fixed_seq_len
    search = entry.scenarios.fixed_seq_len[0].search_space
    assert search[0].concurrencies() == (4, 8, 16, 32, 64, 100)
    assert search[1].concurrencies() == (1, 2, 4)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("spec-decoding", "spec-decode", ("m.yaml:15 k1", "did you mean 'spec-decoding'?", "allowed here: ")),
        ("runner: h200", "runer: h200", ("m.yaml:7 k1", "'runer' is not a field (did you mean 'runner'?)")),
        ("  framework: sglang\n", "", ("m.yaml:2 k1", "'framework' is missing")),
        ("tp: 4,", "tp: four,", ("m.yaml:14 k1", "tp", "'four'")),
        ("conc-start: 4", "conc-start: 200", ("m.yaml:14 k1", "'conc-start' (200) must be <= 'conc-end' (100)")),
        ("conc-start: 4", "conc-start: 0", ("m.yaml:14 k1", "must be greater than 0")),
        (", conc-end: 100", "", ("m.yaml:14 k1", "must specify either 'conc-list'")),
        ("conc-list: [1, 2, 4]", "conc-list: []", ("m.yaml:15 k1", "greater than 0")),
        ("spec-decoding: mtp", "spec-decoding: eagle", ("m.yaml:15 k1", "'eagle'", "mtp")),
        ("tp: 8,", "tp: 8, dcp-size: 3,", ("m.yaml:15 k1", "'tp' (8) must be divisible by 'dcp-size' (3)")),
        ("tp: 8,", "tp: 8, pp: true,", ("m.yaml:15 k1", "pp")),
        ("multinode: false", "multinode: maybe", ("m.yaml:8 k1", "multinode")),
        ("tp: 8,", "tp: -1,", ("m.yaml:15 k1", "tp", "greater than 0", "(given: -1)", "what to do: ")),
        ("tp: 8,", "tp: true,", ("m.yaml:15 k1", "not true or false")),
        ("isl: 128", "isl: 0", ("m.yaml:11 k1", "isl", "greater than 0")),
        ("isl: 128", "isl: true", ("m.yaml:11 k1", "not true or false")),
        ("isl: 128", f"isl: {10**50}", ("m.yaml:11 k1", "a number of more than 40 digits")),
        ("[1, 2, 4]", f"[1, {10**30}]", ("m.yaml:15 k1", "65536")),
        ("ep: 8", "ep: 0", ("m.yaml:15 k1", "ep", "greater than 0")),
        ("k1:", "k*:", ("m.yaml:1", "contains '*'")),
        ("isl: 128", "isl: 128\n      isl: 256", ("m.yaml:12", "'isl' stands here twice (first at line 11)")),
    ],
)
def test_a_fault_names_its_line_and_what_is_allowed(old: str, new: str, words: tuple[str, ...]) -> None:
    assert old in GOOD
    message = fault(GOOD.replace(old, new))
    for word in words:
        assert word in message


def test_agentic_needs_a_fleet_label_and_dram_needs_a_backend() -> None:
    agentic = GOOD.replace("fixed-seq-len", "agentic-coding").replace("    - isl: 128\n      osl: 32\n", "    -\n")
    body = agentic.split("      - { tp: 4")[0] + "      - { tp: 4, conc-list: [1], kv-offloading: none }\n"
    assert "starts with 'cluster:'" in fault(body)
    fleet = body.replace("runner: h200", "runner: cluster:h200-x")
    assert read_master(parse_yaml(fleet, "m.yaml"))[0].key == "k1"
    assert "needs 'kv-offload-backend'" in fault(fleet.replace("offloading: none", "offloading: dram"))


def test_the_same_key_in_two_files_is_refused_with_both_places(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(GOOD)
    second.write_text("# one line more\n" + GOOD)
    with pytest.raises(ConfigError) as caught:
        load_master([first, second])
    assert f"{second}:2" in str(caught.value) and f"{first}:1" in str(caught.value)


def test_a_missing_file_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_master([tmp_path / "none.yaml"])
