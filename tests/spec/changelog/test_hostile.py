"""Changes that read otherwise than they look, or that would break the change after them."""

from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.cli.main import main
from prony.spec.changelog.batch import matches
from prony.spec.changelog.document import Source
from prony.spec.changelog.merge import resolve
from tests.spec.changelog.test_rules import BASE, FIRST_NEW, GOOD, PR, after, findings


def test_a_wildcard_of_many_stars_is_matched_at_once() -> None:
    assert not matches("*" * 200 + "x", "a" * 200)
    assert not matches("*a" * 100 + "x", "a" * 200)
    assert matches("a**b*c", "axxbyyc") and matches("*", "") and matches("a*a", "aa")
    assert not matches("a*a", "a") and not matches("ab*bc", "abc") and not matches("a*b*c", "acb")


TAGGED = [
    ("!!set {a}", "config-keys:\n    - c", "config-keys: !!set {c}", 0),
    ("!!binary", "- c\n", "- !!binary YQ==\n", 1),
    ("own tag", "- c\n", "- !mine c\n", 1),
    ("date", "- c\n", "- 2026-01-01\n", 1),
    ("fraction", "- c\n", "- 1.5\n", 1),
]


@pytest.mark.parametrize(("old", "new", "line"), [case[1:] for case in TAGGED], ids=[case[0] for case in TAGGED])
def test_a_value_of_another_yaml_type_is_refused_with_its_line(old: str, new: str, line: int) -> None:
    (found,) = findings(GOOD.replace(old, new))
    assert found.rule == "changelog-tag" and found.where is not None and found.where.line == FIRST_NEW + line
    assert found.fix and found.allowed


@pytest.mark.parametrize("extra", ['  evals-only: "true"\n', "  evals-only: 1\n", '  eval-min-prefill-ep: "2"\n'])
def test_a_truth_value_or_number_in_quotes_is_refused(extra: str) -> None:
    assert [item.rule for item in findings(after(extra))] == ["changelog-field"]


@pytest.mark.parametrize("tagged", ["!!bool maybe", '!!int ""'])
def test_a_tag_that_its_text_does_not_bear_out_is_refused(tagged: str) -> None:
    assert [item.rule for item in findings(after(f"  evals-only: {tagged}\n"))] == ["changelog-yaml"]


@pytest.mark.parametrize("text", ["- a: b\n", "[]\n", "- - a\n"])
def test_a_list_of_no_entries_is_refused_by_every_command(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = findings(text)
    assert found.where is not None and found.where.line == 1 and found.fix
    assert findings(GOOD, base=text)
    odd, good = Source(text.encode(), "odd.yaml"), Source(BASE.encode(), "good.yaml")
    with pytest.raises(ConfigError, match=r"odd\.yaml:1"):
        resolve(odd, good, good, PR)
    with pytest.raises(ConfigError, match=r"odd\.yaml:1"):
        resolve(good, good, odd, PR)
    path = tmp_path / "log.yaml"
    path.write_text(text)
    assert main(["changelog", "add", "--keys", "a", "--description", "b", "--file", str(path)]) == 2
    assert "log.yaml:1" in capsys.readouterr().err and path.read_text() == text
