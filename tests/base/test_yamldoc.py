"""YAML with line marks: every fault names its line."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from prony.base.errors import ConfigError
from prony.base.yamldoc import parse_yaml

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc-_ 1", min_size=1), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc-_ 1", min_size=1), PLAIN, max_size=5).filter(bool))
def test_values_are_those_that_the_safe_loader_gives(value: dict[str, object]) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    assert parse_yaml(text, "x.yaml") == yaml.safe_load(text)


def test_each_key_and_item_knows_its_line() -> None:
    document = parse_yaml("a: 1\nb:\n  - x\n  - y\n", "x.yaml")
    assert document.lines == {"a": 1, "b": 2}
    assert document["b"].lines == [3, 4]


def test_merge_keys_keep_the_line_of_their_source() -> None:
    document = parse_yaml("base: &b {tp: 1, ep: 2}\ncase:\n  <<: *b\n  ep: 4\n", "x.yaml")
    assert document["case"] == {"tp": 1, "ep": 4}
    assert document["case"].lines == {"ep": 4, "tp": 1}


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3", "'a' stands here twice (first at line 1)"),
        ("a:\n  b: 1\n  b: 2\n", "x.yaml:3", "'b' stands here twice"),
        ("a: [1, 2\nb: 3\n", "x.yaml:2", "not YAML"),
        ("- 1\n- 2\n", "x.yaml:1", "must contain a mapping"),
        ("", "x.yaml", "is empty"),
        ("a: *nowhere\n", "x.yaml:1", "not YAML"),
        ("a: &x [*x]\n", "x.yaml:1", "an alias that contains itself"),
        ("a: \x00\n", "x.yaml", "not YAML"),
        ("a: " + "[" * 600 + "]" * 600, "x.yaml:1", "nested more than 64 levels deep"),
        ("a: " + "[" * 100_000, "x.yaml", "YAML"),
        (LAUGHS, "x.yaml:6", "aliases make"),
        ("a: 2026-13-77\n", "x.yaml:1", "cannot be read as timestamp"),
    ],
)
def test_a_fault_names_file_line_and_reason(text: str, place: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "x.yaml")
    assert str(caught.value).startswith(place)
    assert words in str(caught.value)
