"""What a change does to the file: entries appended, links corrected, or something that is not allowed."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from prony.base.finding import Finding, Where
from prony.base.units import counted
from prony.spec.changelog.document import Document, Source, common_prefix, parse
from prony.spec.changelog.entry import MEND, Entry, fault, signature_of

Target = int | Literal["main", "any", "written"]
"""What links appended entries may have: that of a number or a placeholder; that of any pull request, as on main;
any of these; or any text."""
DEFAULT_PROJECT = "SemiAnalysisAI/InferenceX"
_PROJECT = re.compile(rb"(?m)^  pr-link: *https://github\.com/([\w.-]+/[\w.-]+)/pull/")
_NEXT = b"\n- config-keys:\n    - next\n  description:\n    - next\n  pr-link: XXX\n"
_NEXT_TOLD = (signature_of({"config-keys": ["next"], "description": ["next"]}), "XXX")
_RESTORE = "restore the base file byte for byte and append at the end, or " + MEND


@dataclass(frozen=True)
class Links:
    """The addresses that entries of one project may carry."""

    project: str = DEFAULT_PROJECT

    def of(self, number: int) -> str:
        """Return the address of a pull request."""
        return f"https://github.com/{self.project}/pull/{number}"

    @property
    def placeholder(self) -> str:
        """The placeholder that is written."""
        return f"https://github.com/{self.project}/pull/XXX"

    def is_placeholder(self, link: str) -> bool:
        """Whether a link stands for a number to come."""
        return link in ("XXX", self.placeholder)

    def is_canonical(self, link: str) -> bool:
        """Whether a link is the address of a pull request of this project."""
        return re.fullmatch(re.escape(f"https://github.com/{self.project}/pull/") + r"[0-9]+", link) is not None


def links_of(raw: bytes) -> Links:
    """Return the links of the project that most entries of a file name."""
    names = _PROJECT.findall(raw)
    return Links(max(set(names), key=names.count).decode()) if names else Links()


@dataclass(frozen=True)
class Change:
    """The difference of two documents that both parse."""

    base: Document
    head: Document
    additions: tuple[Entry, ...]
    corrections: int
    faults: tuple[Finding, ...]


def compare(base: Document, head: Document, target: Target, links: Links) -> Change:
    """Compare whole files by entry and by byte. Faults stand in the order in which the reference's merge tool looks."""
    count = len(base.entries)
    additions = head.entries[count:]
    faults = [item for item in (_history(base, head, links), _mixed(base, head)) if item]
    changed = [index for index, (old, new) in enumerate(_pairs(base, head)) if not old.same_as(new)]
    sound = not faults
    faults += _link_faults(head, additions if sound else _not_in(base, head), target, links)
    if sound:
        faults += _raw_faults(base, head, additions, len(changed))
    return Change(base, head, additions, len(changed), tuple(faults))


def _not_in(base: Document, head: Document) -> tuple[Entry, ...]:
    """Return the entries that the base has not, wherever they stand: links of old ones are history."""
    told = Counter((entry.signature, entry.link) for entry in base.entries)
    new = []
    for entry in head.entries:
        told[entry.signature, entry.link] -= 1
        if told[entry.signature, entry.link] < 0:
            new.append(entry)
    return tuple(new)


def _pairs(base: Document, head: Document) -> Iterator[tuple[Entry, Entry]]:
    return zip(base.entries, head.entries, strict=False)


def _history(base: Document, head: Document, links: Links) -> Finding | None:
    """Return the first way in which old entries are not what they were."""
    if len(head.entries) < len(base.entries):
        return _deleted(base, head)
    for index, (old, new) in enumerate(_pairs(base, head)):
        if old.same_as(new):
            continue
        if old.signature != new.signature:
            return _changed(base, head, index)
        if not links.is_canonical(new.link):
            return fault(
                "correction-link", head.where(new, "pr-link"),
                f"entry {index + 1}: the link was changed to '{new.link}', which is no pull request of this project",
                allowed=links.of(0).removesuffix("0") + "NUMBER",
                fix=f"restore '{old.link}', or write the right address",
            )  # fmt: skip
    return None


def _deleted(base: Document, head: Document) -> Finding:
    missing = _first_missing(base, head)
    gone = base.entries[missing]
    line = head.entries[missing].line if missing < len(head.entries) else 0
    return fault(
        "deleted", Where(file=head.source.file, line=line),
        f"entry {missing + 1} of the base ({base.where(gone)}, {gone.asked.config_keys[0]}) was deleted",
        allowed="appending entries; correcting links", fix=_RESTORE,
    )  # fmt: skip


def _first_missing(base: Document, head: Document) -> int:
    for index, (old, new) in enumerate(_pairs(base, head)):
        if old.signature != new.signature:
            return index
    return len(head.entries)


def _changed(base: Document, head: Document, index: int) -> Finding:
    """Tell an insertion and a deletion from an edit."""
    old, new = base.entries[index], head.entries[index]
    if any(later.signature == old.signature for later in head.entries[index + 1 :]):
        return fault(
            "inserted", head.where(new), f"entry {index + 1} was inserted before old entries",
            allowed="new entries at the end", fix=f"move it to the end of the file, or {MEND}",
        )  # fmt: skip
    following = base.entries[index + 1 : index + 2]
    if following and following[0].signature == new.signature:
        return fault(
            "deleted", head.where(new), f"entry {index + 1} of the base ({base.where(old)}) was deleted",
            allowed="appending entries; correcting links", fix=_RESTORE,
        )  # fmt: skip
    line, was = _first_difference(base.block(old), head.block(new))
    return fault(
        "edited", Where(file=head.source.file, line=new.line + line),
        f"entry {index + 1} is history and was edited (in the base: '{was}')",
        allowed="a corrected pr-link is the only change to an old entry",
        fix=f"restore what stood at {base.where(old)}; say what is new in an entry at the end",
    )  # fmt: skip


def _first_difference(old: bytes, new: bytes) -> tuple[int, str]:
    """Return how many lines down two blocks differ, and what stood there."""
    before, after = old.split(b"\n"), new.split(b"\n")
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    return at, before[at].decode().strip() if at < len(before) else ""


def _mixed(base: Document, head: Document) -> Finding | None:
    """Corrections of links and new entries are two changes."""
    if len(head.entries) <= len(base.entries):
        return None
    for old, new in _pairs(base, head):
        if old.signature != new.signature:
            return None
        if old.link != new.link:
            return fault(
                "mixed", head.where(new, "pr-link"), f"corrects the link '{old.link}' of an old entry and adds entries",
                allowed="one of the two in one change",
                fix="restore the old link here; correct it in a change of its own",
            )  # fmt: skip
    return None


def _link_faults(head: Document, additions: tuple[Entry, ...], target: Target, links: Links) -> Iterator[Finding]:
    if target == "written":
        return
    for entry in additions:
        where = head.where(entry, "pr-link")
        if target == "main":
            if not links.is_canonical(entry.link):
                yield _not_for_main(where, entry.link, links)
        elif target == "any":
            if not links.is_canonical(entry.link) and not links.is_placeholder(entry.link):
                yield _no_link(where, entry.link, links)
        elif entry.link != links.of(target) and not links.is_placeholder(entry.link):
            yield fault(
                "link", where, f"the link '{entry.link}' is not that of this pull request, {target}",
                allowed=f"{links.of(target)}, {links.placeholder}, XXX",
                fix=f"write '  pr-link: {links.of(target)}' at {where}, or {MEND}",
            )  # fmt: skip


def _no_link(where: Where, link: str, links: Links) -> Finding:
    return fault(
        "link", where, f"'{link}' is neither a pull request's address nor a placeholder",
        allowed=f"{links.of(0).removesuffix('0')}NUMBER, {links.placeholder}, XXX",
        fix=f"write '  pr-link: {links.placeholder}' at {where} until the number is known",
    )  # fmt: skip


def _not_for_main(where: Where, link: str, links: Links) -> Finding:
    rule, what = ("placeholder", "a placeholder") if links.is_placeholder(link) else ("link", f"'{link}'")
    return fault(
        rule, where, f"the link is {what}; on main it must name a pull request",
        allowed=links.of(0).removesuffix("0") + "NUMBER",
        fix=f"write the pull request's address at {where}, as 'prony changelog canonicalize --pr NUMBER' does",
    )  # fmt: skip


def _raw_faults(base: Document, head: Document, additions: tuple[Entry, ...], corrections: int) -> Iterator[Finding]:
    if additions:
        faults = tuple(_append_faults(base, head, additions))
        yield from faults
        if not faults and not _can_go_on(head, additions):
            yield fault(
                "open-end", head.source.where(len(head.source.raw) - 1),
                "the next entry could not be appended: it would change this one or be unreadable",
                allowed="an entry that ends plainly, best with '  pr-link: ADDRESS'",
                fix="end the entry with its pr-link, and the file with it: no '...', no block text ('|', '>')",
            )  # fmt: skip
    elif corrections:
        yield from _correction_faults(base, head, corrections)
    elif base.source.raw != head.source.raw:
        yield _bytes_changed(
            base, head, "layout", "only blanks, comments or layout of old entries differ: nothing is asked for"
        )  # fmt: skip


def separator_after(raw: bytes) -> bytes:
    """Return what stands between a file and an entry that is appended to it."""
    return b"" if not raw or raw.endswith(b"\n\n") else b"\n"


def _bytes_changed(base: Document, head: Document, rule: str, message: str) -> Finding:
    old, new = base.source.raw, head.source.raw
    at = common_prefix(old, new)
    was = old[at:].split(b"\n", 1)[0].decode(errors="replace")
    return fault(rule, head.source.where(at), message, allowed="old bytes as they are in the base", fix=_RESTORE,
                 evidence=f"base at {base.source.where(at)}: {was!r}")  # fmt: skip


def _append_faults(base: Document, head: Document, additions: tuple[Entry, ...]) -> Iterator[Finding]:
    old, new = base.source.raw, head.source.raw
    if not new.startswith(old):
        yield _bytes_changed(
            base, head, "history-bytes", "the bytes of old entries were changed along with the addition"
        )  # fmt: skip
        return
    first = additions[0]
    needed = separator_after(old)
    if new[len(old) : first.start] != needed:
        yield _separator(head, first, new[len(old) : first.start], needed)
    for _, entry in pairwise(additions):
        before = new[: entry.start]
        if not before.endswith(b"\n\n") or before.endswith(b"\n\n\n"):
            yield _separator(head, entry, before[len(before.rstrip(b"\n")) + 1 :], b"\n")
    if new.endswith(b"\n\n"):
        yield fault(
            "final-blank", head.source.where(len(new) - 1), "empty lines at the end of the file",
            allowed="one newline after the last entry", fix=f"remove the empty lines at the end, or {MEND}",
        )  # fmt: skip


def _can_go_on(head: Document, additions: tuple[Entry, ...]) -> bool:
    """Whether an entry appended to head would leave head's as they are and be read itself."""
    # The added text alone says so unless it goes back to anchors of old entries.
    for start, entries in ((additions[0].start, additions), (0, head.entries)):
        found = parse(Source(head.source.raw[start:] + _NEXT, head.source.file)).entries
        told = [(entry.signature, entry.link) for entry in found]
        if told == [*((entry.signature, entry.link) for entry in entries), _NEXT_TOLD]:
            return True
    return False


def _separator(head: Document, entry: Entry, found: bytes, needed: bytes) -> Finding:
    key, wanted = entry.asked.config_keys[0], "one empty line" if needed else "nothing"
    if found.strip(b"\n"):
        return fault(
            "separator", head.where(entry), f"text or blanks before '{key}' where {wanted} belongs",
            allowed=f"{wanted} between entries", fix="remove what stands between the entries",
        )  # fmt: skip
    there = counted(found.count(b"\n"), "empty line")
    rule = "missing-blank" if len(found) < len(needed) else "extra-blank"
    return fault(
        rule, head.where(entry), f"{there} before '{key}' where {wanted} belongs", allowed=f"{wanted} between entries",
        fix=f"leave {wanted} above line {entry.line}, or {MEND}",
    )  # fmt: skip


def _correction_faults(base: Document, head: Document, corrections: int) -> Iterator[Finding]:
    old, new = base.source.raw.splitlines(keepends=True), head.source.raw.splitlines(keepends=True)
    where = Where(file=head.source.file)
    changed = [at for at, (was, now) in enumerate(zip(old, new, strict=False), 1) if was != now]
    odd = [at for at in changed if not _is_link(old[at - 1]) or not _is_link(new[at - 1])]
    if len(old) != len(new) or odd or len(changed) != corrections:
        place = Where(file=head.source.file, line=(odd or changed or [0])[0]) if len(old) == len(new) else where
        yield fault(
            "correction-lines", place, f"{counted(corrections, 'link')} corrected, and other lines changed with it",
            allowed="a correction changes 'pr-link' lines alone", fix="restore every other line of the base file",
        )  # fmt: skip


def _is_link(line: bytes) -> bool:
    return line.startswith(b"  pr-link:")
