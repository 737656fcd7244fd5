"""Changes that read otherwise than they look, or that would break the change after them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.base.errors import ConfigError
from prony.cli.main import main
from prony.spec.changelog.added import added_entries
from prony.spec.changelog.batch import matches
from prony.spec.changelog.document import Source
from prony.spec.changelog.merge import canonicalize, resolve
from prony.spec.changelog.repair import repair
from tests.spec.changelog.test_rules import BASE, FIRST_NEW, GOOD, LINK, PR, after, entry, findings


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


HIDDEN = [("\x85", "line-break"), ("\u2028", "line-break"), ("\u2029", "line-break")]


@pytest.mark.parametrize(("char", "rule"), HIDDEN)
def test_an_added_character_that_hides_a_line_is_refused_everywhere(char: str, rule: str) -> None:
    head = GOOD.removesuffix("\n") + f"{char}  evals-only: true\n"
    (found,) = findings(head)
    assert found.rule == f"changelog-{rule}" and found.where is not None and found.where.line == FIRST_NEW + 4
    assert found.fix
    base, new = Source(BASE.encode(), "base"), Source(head.encode(), "log.yaml")
    for attempt in (lambda: canonicalize(base, new, PR), lambda: resolve(base, new, base, PR)):
        with pytest.raises(ConfigError, match=r"log\.yaml:.*U\+"):
            attempt()
    assert findings(repair(base, new, PR))


def test_a_hidden_character_next_to_one_like_it_in_bytes_is_found() -> None:
    for old, new in (("\u2026", "\u2028"), ("\xe9", "\x85")):
        base = BASE.replace('"x"', f'"{old}"')
        assert [item.rule for item in findings(base.replace(old, new, 1), base=base)] == ["changelog-line-break"]


@pytest.mark.parametrize("char", [char for char, _ in HIDDEN])
def test_such_a_character_in_old_entries_stands_in_nobodys_way(char: str) -> None:
    base, head = (text.replace('"x"', f'"x{char}y"', 1) for text in (BASE, GOOD))
    assert findings(head, base=base) == ()
    filled = canonicalize(Source(base.encode(), "base"), Source(head.encode(), "head"), PR)
    assert filled == head.replace("XXX", f"{LINK}{PR}").encode()
    corrected = base.replace(f"{LINK}1", f"{LINK}7").encode()
    sources = (Source(base.encode(), "base"), Source(corrected, "ours"), Source(head.encode(), "theirs"))
    assert resolve(*sources, None) == head.replace(f"{LINK}1", f"{LINK}7").encode()


QUOTED = entry("c", "XXX", text='"one\n  pr-link: XXX\n  two"')


def test_a_link_inside_a_text_of_many_lines_is_left_alone() -> None:
    base, head = Source(BASE.encode(), "base"), Source(f"{BASE}\n{QUOTED}".encode(), "log.yaml")
    filled = f"{LINK}{PR}\n".join(QUOTED.rsplit("XXX\n", 1))
    wanted = f"{BASE}\n{filled}".encode()
    assert canonicalize(base, head, PR) == resolve(base, head, base, PR) == wanted
    wrong = Source(head.raw.removesuffix(b"XXX\n") + f"{LINK}8\n".encode(), "log.yaml")
    assert repair(base, wrong, PR) == wanted


@pytest.mark.parametrize("link", ["\n    XXX", "&a XXX\n  scenario-type:\n    - *a"])
def test_a_link_that_cannot_be_written_on_its_line_is_refused(link: str) -> None:
    base, head = Source(BASE.encode(), "base"), Source(f"{BASE}\n{entry('c', link)}".encode(), "log.yaml")
    for attempt in (lambda: canonicalize(base, head, PR), lambda: resolve(base, head, base, PR)):
        with pytest.raises(ConfigError):
            attempt()


@pytest.mark.parametrize(
    "end",
    ["- config-keys:\n    - c\n  pr-link: XXX\n  description:\n    - |+\n      text\n", entry("c", "XXX") + "...\n"],
    ids=["block text", "document end"],
)
def test_an_addition_after_which_none_could_follow_is_refused(end: str) -> None:
    (found,) = findings(f"{BASE}\n{end}")
    assert found.rule == "changelog-open-end" and found.fix
    assert found.where is not None and found.where.line == f"{BASE}\n{end}".count("\n")


def test_an_addition_that_names_an_anchor_of_an_old_entry_can_be_followed() -> None:
    base, head = (text.replace("- a\n", "- &old a\n", 1) for text in (BASE, f"{BASE}\n{entry('*old', 'XXX')}"))
    assert findings(head, base=base) == ()


@pytest.mark.parametrize("keys", ["!!set {c}", "[!!binary Yw==]"])
def test_selection_takes_no_set_or_bytes_for_a_list_of_texts(keys: str) -> None:
    head = GOOD.replace("config-keys:\n    - c", f"config-keys: {keys}")
    with pytest.raises(ConfigError, match="added entry 1"):
        added_entries(Source(BASE.encode(), "base"), Source(head.encode(), "log.yaml"))


NOISE = st.lists(
    st.tuples(st.integers(0, 10_000), st.sampled_from([b"\r", b"\r\n", b"\n", b"\xef\xbb\xbf", b" ", b"\t"])),
    max_size=4,
)


@given(NOISE, st.sampled_from([b"", b"\r", b"\r\r\n", b"\n\n", b" "]), st.booleans())
def test_what_fix_has_mended_it_does_not_mend_again(
    noise: list[tuple[int, bytes]], tail: bytes, base_is_empty: bool
) -> None:
    base = Source(b"" if base_is_empty else BASE.encode(), "base.yaml")
    head = GOOD.encode()
    for place, mark in noise:
        head = head[: place % len(head)] + mark + head[place % len(head) :]
    once = repair(base, Source(head.rstrip(b"\n") + tail, "head.yaml"), PR)
    assert repair(base, Source(once, "head.yaml"), PR) == once


def test_filling_in_links_costs_no_copy_of_the_file_for_each() -> None:
    added = "\n".join(entry(f"k{number}", link="XXX") for number in range(4000))
    head = Source((BASE + "\n" + added).encode(), "head.yaml")
    result = canonicalize(Source(BASE.encode(), "base.yaml"), head, PR)
    assert result.count(f"pull/{PR}\n".encode()) >= 4000 and b"XXX" not in result[len(BASE) :]
