"""Load rules beside a master config."""

from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.base.yamldoc import parse_yaml
from prony.spec.load import LoadRules
from prony.spec.loadfile import load_rules, read_rules
from prony.spec.workload import FileWorkload


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


@pytest.mark.parametrize(
    ("text", "place", "says", "allowed"),
    [
        ("arrival:\n  kind: opn", 3, "'arrival.kind' is 'opn' (did you mean 'open'?)", "closed, open, timed"),
        ("arrival:\n  stages: []", 2, "'arrival.kind' is missing", ""),
        ("arrival: open", 2, "'arrival' must be a mapping (given: 'open')", "kind: …"),
        (
            "arrival:\n  kind: open\n  stages:\n  - { rate: 1 }\n  - rate: 2\n    fors: 3",
            7,
            "'fors' is not a field (did you mean 'for-s'?)",
            "rate, to-rate, for-s",
        ),
        ("arrival:\n  kind: closed\n  ramp-s: -1", 4, "'arrival.ramp-s' input should be greater", "from 0.0"),
        ("workload:\n  kind: multi-turn\n  turn: 3", 4, "(did you mean 'turns'?)", "kind, turns, think-s"),
        (
            "workload:\n  kind: random\n  input: { kind: normal, mean: 5, sd: 1 }",
            4,
            "'sd' is not a field (did you mean 'std'?)",
            "kind, mean, std, least, most",
        ),
        ("workload:\n  kind: random\n  output: { kind: uniform, least: 3, most: 2 }", 4, "least is above most", ""),
        ("arrival:\n  kind: timed", 2, "arrival 'timed' needs the times of a workload 'request-log'", ""),
        ("endpoint: completions\nworkload:\n  kind: multi-turn\n  turns: 2", 3, "needs endpoint 'chat'", ""),
        ("stream: false\narrival:\n  kind: closed\n  prefill-concurrency: 2", 3, "needs stream", ""),
    ],
)
def test_a_fault_inside_arrival_or_workload_says_where_and_what_is_allowed(
    text: str, place: int, says: str, allowed: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_rules(parse_yaml(f"schema: 1\n{text}\n", "load.yaml"))
    assert caught.value.message.startswith(f"load.yaml:{place} ") and says in caught.value.message
    assert caught.value.allowed == allowed and caught.value.fix


def test_a_file_other_than_the_one_whose_digest_is_given_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"prompt": "a"}\n')
    load = tmp_path / "load.yaml"
    load.write_text(f"schema: 1\nworkload: {{kind: request-log, file: log.jsonl, sha256: {'a' * 64}}}\n")
    with pytest.raises(ConfigError, match=r"load.yaml:2 workload: .*log.jsonl: is another file than was meant"):
        load_rules(load)


def test_a_workload_file_is_taken_from_the_folder_of_the_load_file_and_named_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"prompt": "a", "max_tokens": 1}\n')
    load = tmp_path / "load.yaml"
    load.write_text("schema: 1\nworkload: {kind: request-log, file: log.jsonl}\narrival: {kind: timed, speed: 2}\n")
    first = load_rules(load).workload
    assert isinstance(first, FileWorkload) and first.file == str(tmp_path / "log.jsonl") and len(first.sha256) == 64
    (tmp_path / "log.jsonl").write_text('{"prompt": "b", "max_tokens": 1}\n')
    second = load_rules(load).workload
    assert isinstance(second, FileWorkload) and second.sha256 != first.sha256


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("workload: {kind: request-log, file: none.jsonl}", r"load.yaml:2 workload: .*none.jsonl: cannot be read"),
        ("workload: {kind: sharegp, file: x}", r"load.yaml:2"),
        ("arrival: {kind: open}", r"load.yaml:2"),
        ("arrival: {kind: open, stages: [{rate: 1, fors: 3}]}", r"load.yaml:2"),
        ("arrival: {kind: closed, prefill-concurrency: 0}", r"load.yaml:2"),
    ],
)
def test_a_fault_of_arrival_or_workload_is_told_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    load = tmp_path / "load.yaml"
    load.write_text(f"schema: 1\n{text}\n")
    with pytest.raises(ConfigError, match=says):
        load_rules(load)
