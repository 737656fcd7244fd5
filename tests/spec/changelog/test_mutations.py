"""Random damage to real files: never a crash, never a broken rule accepted, never a valid append refused."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prony.base.errors import ConfigError
from prony.spec.changelog.added import added_entries
from prony.spec.changelog.check import check
from prony.spec.changelog.compare import links_of
from prony.spec.changelog.document import Source
from prony.spec.changelog.merge import canonicalize, resolve
from prony.spec.changelog.repair import repair
from prony.spec.changelog.write import NewEntry, append_entry
from tests.conftest import optional_part
from tests.spec.changelog import oracle

MUTATIONS = int(os.environ.get("PRONY_MUTATIONS", "1000"))
ENTRIES = int(os.environ.get("PRONY_MUTATED_ENTRIES", "9"))
REAL = Path(__file__).resolve().parents[4] / "shared/data/inferencex/perf-changelog.yaml"
LINK = "https://github.com/SemiAnalysisAI/InferenceX/pull/"
seeded = settings(
    max_examples=MUTATIONS, derandomize=True, database=None, suppress_health_check=list(HealthCheck), deadline=None
)


class Versions(tuple[bytes, bytes]):
    """Base and head; short where a test's arguments are shown."""

    def __repr__(self) -> str:
        return "the two versions"


@pytest.fixture(scope="module")
def versions() -> Versions:
    """The end of the real file, and the same with its last two entries appended once more."""
    optional_part(REAL.exists(), "the real change log")
    blocks = REAL.read_bytes().split(b"\n- config-keys:")
    base = b"- config-keys:" + b"\n- config-keys:".join(blocks[-ENTRIES:])
    new = (b"- config-keys:" + blocks[-2]).rstrip(b" \n") + b"\n\n- config-keys:" + blocks[-1]
    return Versions((base, base + b"\n" + new))


spots = st.tuples(
    st.floats(0, 1), st.booleans(), st.sampled_from(["replace", "insert", "delete", "swap"]),
    st.one_of(
        st.sampled_from([b"\n", b"\n\n", b" ", b"- ", b":", b"#", b"\t", b"\r\n", b"\0", b'"', b"'", b"XXX",
                         b"- config-keys:",
                         b"\xef\xbb\xbf", b"&a ", b"*a", b"---\n", b"|+", b"{", b"[", b"<<<<<<< x\n", b"1", b"9999"]),
        st.binary(min_size=1, max_size=3),
    ),
    st.integers(1, 40),
)  # fmt: skip


def damaged(raw: bytes, edits: list[tuple[float, bool, str, bytes, int]], tail: int) -> bytes:
    """Apply edits; most of them hit the added part."""
    for where, in_tail, kind, what, length in edits:
        start = tail if in_tail else 0
        at = min(len(raw), start + int(where * max(0, len(raw) - start)))
        rest = raw[at:]
        if kind == "insert":
            raw = raw[:at] + what + rest
        elif kind == "replace":
            raw = raw[:at] + what + rest[len(what) :]
        elif kind == "delete":
            raw = raw[:at] + rest[length:]
        else:
            raw = raw[:at] + rest[length : 2 * length] + rest[:length] + rest[2 * length :]
    return raw


@given(edits=st.lists(spots, min_size=0, max_size=3), pr=st.sampled_from([None, 2685, 2707, 9999]))
@seeded
def test_the_gate_accepts_exactly_what_the_strict_rules_accept(
    versions: Versions, edits: list[tuple[float, bool, str, bytes, int]], pr: int | None
) -> None:
    base, whole = versions
    head = damaged(whole, edits, len(base) - 100)
    findings = check(Source(base, "base.yaml"), Source(head, "head.yaml"), "main" if pr is None else pr)
    assert (not findings) == oracle.accepts(base, head, pr), findings
    assert all(finding.where and finding.message and finding.fix for finding in findings)


@given(edits=st.lists(spots, min_size=1, max_size=2))
@settings(seeded, max_examples=max(100, MUTATIONS // 10))
def test_a_repair_never_loses_an_entry_nor_touches_what_the_base_has(
    versions: Versions, edits: list[tuple[float, bool, str, bytes, int]]
) -> None:
    base, whole = versions
    head = damaged(whole, edits, len(base))
    old = Source(base, "base.yaml")
    mended = repair(old, Source(head, "head.yaml"), 9999)
    before, after = oracle.entries_of(head), oracle.entries_of(mended)
    if before is not None:
        assert after is not None

        def plain(entries: list[dict[str, object]]) -> list[str]:
            return sorted(str({**entry, "pr-link": ""}) for entry in entries)

        assert plain(before) == plain(after)
    if not check(old, Source(mended, "head.yaml"), 9999):
        assert mended.startswith(base)


@given(
    keys=st.lists(st.from_regex(r"[a-z0-9.*-]{1,12}", fullmatch=True), min_size=1, max_size=3),
    description=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40), min_size=1, max_size=3
    ),
    number=st.one_of(st.none(), st.integers(1, 99999)),
)
@settings(seeded, max_examples=max(100, MUTATIONS // 5))
def test_an_added_entry_always_passes_whatever_its_text(
    versions: Versions, keys: list[str], description: list[str], number: int | None
) -> None:
    base = Source(versions[0], "log.yaml")
    result = append_entry(base, NewEntry(tuple(keys), tuple(description), number))
    assert check(base, Source(result, "log.yaml"), number or 7) == ()
    assert oracle.accepts(base.raw, result, number or 7)
    assert oracle.entries_of(result)[-1]["description"] == description  # type: ignore[index]
    assert links_of(result).project == "SemiAnalysisAI/InferenceX"


@given(edits=st.lists(spots, min_size=0, max_size=3), other=st.lists(spots, min_size=0, max_size=2))
@settings(seeded, max_examples=max(100, MUTATIONS // 5))
def test_selection_and_merges_of_damaged_files_give_a_sound_file_or_a_reason(
    versions: Versions,
    edits: list[tuple[float, bool, str, bytes, int]],
    other: list[tuple[float, bool, str, bytes, int]],
) -> None:
    base, whole = versions
    head, main = damaged(whole, edits, len(base) - 100), damaged(base, other, len(base) - 300)
    old, new, there = Source(base, "b"), Source(head, "h"), Source(main, "m")
    with contextlib.suppress(ConfigError):
        assert added_entries(old, new)
    with contextlib.suppress(ConfigError):
        canonical = canonicalize(old, new, 9999)
        assert canonical == head or oracle.accepts(base, canonical, 9999)
    for number in (None, 9999):
        with contextlib.suppress(ConfigError):
            merged = resolve(old, new, there, number)
            assert len(oracle.entries_of(merged) or []) >= len(oracle.entries_of(main) or [])
            assert oracle.entries_of(merged) is not None
