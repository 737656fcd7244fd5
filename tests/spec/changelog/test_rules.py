"""Each way to break the file is told apart, with its place and what to do."""

from pathlib import Path

import pytest

from prony.base.finding import Finding
from prony.spec.changelog.check import check
from prony.spec.changelog.document import Source
from prony.spec.changelog.repair import repair
from prony.spec.changelog.select import Masters
from prony.spec.compat.generate import load_catalogue

LINK = "https://github.com/SemiAnalysisAI/InferenceX/pull/"
PR = 9


def entry(key: str, link: str, extra: str = "", text: str = '"x"') -> str:
    return f"- config-keys:\n    - {key}\n  description:\n    - {text}\n{extra}  pr-link: {link}\n"


A, B = entry("a", f"{LINK}1"), entry("b", f"{LINK}2")
BASE = f"{A}\n{B}"
NEW = entry("c", "XXX")
GOOD = f"{BASE}\n{NEW}"
FIRST_NEW = BASE.count("\n") + 2


def after(extra: str, key: str = "c") -> str:
    """The base with one entry more, of more fields."""
    return f"{BASE}\n{entry(key, 'XXX', extra)}"


def findings(head: str | bytes, pr: int | None = PR, base: str = BASE) -> tuple[Finding, ...]:
    raw = head if isinstance(head, bytes) else head.encode()
    return check(Source(base.encode(), "base"), Source(raw, "log.yaml"), "main" if pr is None else pr)


FAULTS: list[tuple[str, str | bytes, int, str]] = [
    ("crlf", GOOD.replace(NEW, NEW.replace("\n", "\r\n")), FIRST_NEW, "changelog-cr"),
    ("tab", GOOD.replace("    - c\n", "\t- c\n"), FIRST_NEW + 1, "changelog-tab"),
    ("tab in a string",
     GOOD.replace('- "x"\n  pr-link: XXX', '- "a\tb"\n  pr-link: XXX'), FIRST_NEW + 3, "changelog-tab"),
    ("nul", GOOD.encode().replace(b"- c\n", b"- \0c\n"), FIRST_NEW + 1, "changelog-nul"),
    ("utf-16", GOOD.encode("utf-16-le"), 1, "changelog-nul"),
    ("latin-1",
     GOOD.replace('"x"\n  pr-link: XXX', '"é"\n  pr-link: XXX').encode("latin-1"), FIRST_NEW + 3, "changelog-utf8"),
    ("bom", "\ufeff" + GOOD, 1, "changelog-bom"),
    ("conflict", f"{BASE}\n<<<<<<< ours\n{NEW}=======\n{NEW}>>>>>>> main\n", FIRST_NEW, "changelog-conflict"),
    ("syntax", GOOD.replace("- c\n", "- 'c\n"), FIRST_NEW + 5, "changelog-yaml"),
    ("twice", GOOD + "  pr-link: XXX\n", FIRST_NEW + 5, "changelog-duplicate-key"),
    ("no list", "a: b\n", 1, "changelog-root"),
    ("empty", "", 0, "changelog-deleted"),
    ("other first key",
     f"{BASE}\n- pr-link: XXX\n  config-keys: [c]\n  description: [x]\n", FIRST_NEW, "changelog-entry-start"),
    ("unknown field", after("  priority: high\n"), FIRST_NEW + 4, "changelog-unknown-field"),
    ("no link", GOOD.removesuffix("  pr-link: XXX\n"), FIRST_NEW, "changelog-missing-field"),
    ("text for a list",
     GOOD.replace(":\n    - \"x\"\n  pr-link: XXX", ": x\n  pr-link: XXX"), FIRST_NEW + 2, "changelog-field"),
    ("no keys", GOOD.replace("config-keys:\n    - c", "config-keys: []"), FIRST_NEW, "changelog-field"),
    ("scenario", after("  scenario-type:\n    - chat\n"), FIRST_NEW + 5, "changelog-field"),
    ("deltas with evals", after("  append-only: true\n  evals-only: true\n"), FIRST_NEW, "changelog-field"),
    ("deleted last", A, 0, "changelog-deleted"),
    ("deleted first and appended", f"{B}\n{NEW}", 1, "changelog-deleted"),
    ("inserted on top", f"{NEW}\n{BASE}", 1, "changelog-inserted"),
    ("edited", GOOD.replace("- a\n", "- aa\n"), 2, "changelog-edited"),
    ("history whitespace", GOOD.replace("description:", "description: ", 1), 3, "changelog-history-bytes"),
    ("whitespace alone", BASE.replace("description:", "description: ", 1), 3, "changelog-layout"),
    ("corrected and appended", GOOD.replace(f"{LINK}2", f"{LINK}3"), 11, "changelog-mixed"),
    ("corrected to nonsense", BASE.replace(f"{LINK}2", "later"), 11, "changelog-correction-link"),
    ("corrected with layout",
     BASE.replace(f"{LINK}2", f"{LINK}3").replace("\n\n", "\n"), 0, "changelog-correction-lines"),
    ("wrong number", GOOD.replace("XXX", f"{LINK}8"), FIRST_NEW + 4, "changelog-link"),
    ("other project", GOOD.replace("XXX", "https://github.com/a/b/pull/9"), FIRST_NEW + 4, "changelog-link"),
    ("no empty line", f"{BASE}{NEW}", FIRST_NEW - 1, "changelog-missing-blank"),
    ("two empty lines", f"{BASE}\n\n{NEW}", FIRST_NEW + 1, "changelog-extra-blank"),
    ("no line between", f"{BASE}\n{NEW}{entry('d', 'XXX')}", FIRST_NEW + 5, "changelog-missing-blank"),
    ("two lines between", f"{BASE}\n{NEW}\n\n{entry('d', 'XXX')}", FIRST_NEW + 7, "changelog-extra-blank"),
    ("comment before", f"{BASE}\n# mine\n{NEW}", FIRST_NEW + 1, "changelog-separator"),
    ("empty line at the end", GOOD + "\n", FIRST_NEW + 5, "changelog-final-blank"),
    ("no final newline", GOOD.removesuffix("\n"), FIRST_NEW + 4, "changelog-final-newline"),
    ("nothing", BASE, 0, "changelog-no-change"),
    ("deltas among others",
     GOOD + after("  append-only: true\n", "d").removeprefix(BASE), FIRST_NEW + 10, "changelog-append-only"),
]  # fmt: skip


@pytest.mark.parametrize(("head", "line", "rule"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_a_fault_is_named_with_its_line_what_is_allowed_and_what_to_do(head: str | bytes, line: int, rule: str) -> None:
    found = findings(head)
    assert found[0].rule == rule, found
    assert found[0].where is not None and (found[0].where.file, found[0].where.line) == ("log.yaml", line), found
    assert found[0].message and found[0].fix


@pytest.mark.parametrize("link", ["XXX", f"{LINK}XXX", f"{LINK}{PR}"])
def test_an_append_with_this_link_or_a_placeholder_is_accepted(link: str) -> None:
    assert findings(f"{BASE}\n{entry('c', link)}") == ()


def test_a_placeholder_is_refused_where_links_must_be_final() -> None:
    (found,) = findings(GOOD, pr=None)
    assert found.rule == "changelog-placeholder" and "canonicalize --pr NUMBER" in found.fix
    assert findings(f"{BASE}\n{entry('c', f'{LINK}123')}", pr=None) == ()


@pytest.mark.parametrize("link", ["later", "https://example.org/1", f"{LINK}12x", "https://github.com/a/b/pull/9"])
def test_a_link_that_is_none_is_refused_without_a_number_too(link: str) -> None:
    head = Source(f"{BASE}\n{entry('c', link)}".encode(), "log.yaml")
    (found,) = check(Source(BASE.encode(), "base"), head, "any")
    assert found.rule == "changelog-link" and link in found.message and f"{LINK}XXX" in found.fix
    assert found.where is not None and found.where.line == FIRST_NEW + 4


@pytest.mark.parametrize("link", ["XXX", f"{LINK}XXX", f"{LINK}123"])
def test_a_well_formed_link_is_not_judged_against_a_number_that_is_not_known(link: str) -> None:
    head = Source(f"{BASE}\n{entry('c', link)}".encode(), "log.yaml")
    assert check(Source(BASE.encode(), "base"), head, "any") == ()


def test_a_corrected_link_alone_is_accepted() -> None:
    assert findings(BASE.replace(f"{LINK}2", f"{LINK}3")) == ()
    assert findings(BASE.replace(f"{LINK}2", f"{LINK}3 # was 2")) == ()


def test_after_a_base_that_ends_with_an_empty_line_the_entry_follows_at_once() -> None:
    assert findings(f"{BASE}\n{NEW}", base=f"{BASE}\n") == ()
    assert findings(f"{BASE}\n\n{NEW}", base=f"{BASE}\n")[0].rule == "changelog-extra-blank"


def test_a_base_that_is_broken_is_said_to_be() -> None:
    (found,) = findings(GOOD, base=BASE.removesuffix("\n"))
    assert found.where is not None and found.where.file == "base" and "main first" in found.fix


REPAIRED = [
    "crlf", "bom", "inserted on top", "history whitespace", "wrong number", "no empty line", "two empty lines",
    "no line between", "two lines between", "empty line at the end", "no final newline",
]  # fmt: skip


@pytest.mark.parametrize("name", REPAIRED)
def test_what_is_mechanical_is_repaired_to_an_accepted_append(name: str) -> None:
    head = next(fault[1] for fault in FAULTS if fault[0] == name)
    base = Source(BASE.encode(), "base")
    mended = repair(base, Source(head if isinstance(head, bytes) else head.encode(), "log.yaml"), PR)
    assert mended.startswith(BASE.encode()) and findings(mended) == ()


def test_all_faults_are_told_in_one_round_in_line_order_and_a_repair_mends_what_they_claim() -> None:
    new = entry("c", f"{LINK}8").replace('    - "x"', '\t- "x"')
    head = f"{BASE}{new}".removesuffix("\n")
    found = findings(head)
    names = [item.rule.removeprefix("changelog-") for item in found]
    assert names == ["missing-blank", "tab", "final-newline", "link"]
    mended = repair(Source(BASE.encode(), "base"), Source(head.encode(), "log.yaml"), PR)
    assert mended.decode() == f"{BASE}\n" + new.replace(f"{LINK}8", f"{LINK}9")
    assert [item.rule for item in findings(mended)] == ["changelog-tab"]


FOR_THE_AUTHOR = ["tab", "edited", "deleted last", "conflict", "unknown field", "corrected and appended"]


@pytest.mark.parametrize("name", FOR_THE_AUTHOR)
def test_what_needs_the_author_is_left_alone(name: str) -> None:
    head = next(fault[1] for fault in FAULTS if fault[0] == name)
    assert isinstance(head, str)
    base = Source(BASE.encode(), "base")
    mended = repair(base, Source(head.encode(), "log.yaml"), PR)
    assert mended.rstrip(b"\n") == head.encode().rstrip(b"\n") and findings(mended)


def test_a_key_that_no_config_has_is_told_with_near_ones(shared: Path) -> None:
    configs = shared / "data/inferencex/configs"
    catalogue = load_catalogue([configs / "amd-master.yaml"], configs / "runners.yaml")
    masters = Masters(catalogue, catalogue)
    known = next(iter(catalogue.entries))
    for key, what in ((known[:-1] + "?", "is no key"), ("zz*", "matches no key")):
        head = f"{BASE}\n{entry(key, 'XXX')}"
        (found,) = check(Source(BASE.encode(), "base"), Source(head.encode(), "log.yaml"), PR, masters)
        assert found.rule == "changelog-unknown-key" and what in found.message
        assert found.where is not None and found.where.line == FIRST_NEW + 1
    good = f"{BASE}\n{entry(known, 'XXX')}".encode()
    assert check(Source(BASE.encode(), "b"), Source(good, "h"), PR, masters) == ()
