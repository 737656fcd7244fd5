"""Load rules beside a master config."""

import pytest

from prony.base.errors import ConfigError
from prony.base.yamldoc import parse_yaml
from prony.spec.load import LoadRules
from prony.spec.loadfile import read_rules


def test_a_file_changes_only_what_it_names() -> None:
    rules = read_rules(parse_yaml('schema: 1\nrequests: "${4 * conc}"\nrange-ratio: 1\n', "load.yaml"))
    assert rules == LoadRules(requests="${4 * conc}", range_ratio=1.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('schema: 1\nrequests: "${4 * cnc}"\n', ("load.yaml:2 requests: ", "'cnc'", "conc, isl, osl")),
        ("schema: 1\nseed: 1\nwarmups: many\n", ("load.yaml:3 warmups: 'many' is not an integer",)),
        ('schema: 1\nrequests: "${conc ** 9}"\n', ("load.yaml:2 requests: ", "+ - * //")),
        ("schema: 1\nrequests: \"${__import__('os')}\"\n", ("load.yaml:2 requests: ",)),
        ("schema: 2\n", ("load.yaml:1 load rules", "schema")),
        ("schema: 1\nrange-ratio: 2\n", ("load.yaml:2 load rules", "range-ratio")),
        ("schema: 1\nrange-ratio: .nan\n", ("load.yaml:2 load rules", "range-ratio")),
        ("schema: 1\nrequest-timeout-s: 0\n", ("load.yaml:2 load rules", "request-timeout-s")),
    ],
)
def test_a_fault_names_its_line(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_rules(parse_yaml(text, "load.yaml"))
    for word in words:
        assert word in str(caught.value)
