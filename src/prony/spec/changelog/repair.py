"""What can be mended without knowing what the author meant: line ends, blank lines, place at the end, links."""

from dataclasses import replace

from prony.spec.changelog.added import cut_blocks, lines_of
from prony.spec.changelog.behind import read_behind
from prony.spec.changelog.behind import straight as make_straight
from prony.spec.changelog.compare import Target, compare, links_of, separator_after
from prony.spec.changelog.document import Document, Source, parse
from prony.spec.changelog.entry import Entry
from prony.spec.changelog.merge import with_links


def repair(base: Source, head: Source, target: Target) -> bytes:
    """Return head mended where that is mechanical; what is left for the author is left as it was.

    New entries move behind base's bytes with one empty line before each; a link that is not that of the pull request
    becomes it. Where old entries were edited or deleted, only line ends and the final newline are mended.
    """
    old = parse(base)
    if old.faults:
        return head.raw
    straight = replace(head, raw=make_straight(head.raw))
    rebuilt = _rebuilt(base.raw, straight.raw)
    if rebuilt is None:
        return straight.raw
    mended = parse(replace(head, raw=rebuilt), old)
    before = parse(straight, old)
    if any(item.rule == "changelog-tab" for item in mended.faults):
        return _beside_tabs(old, straight, replace(head, raw=rebuilt), target)
    if mended.faults or (not before.faults and _told(before) != _told(mended)):
        return straight.raw
    return _relinked(old, mended, target)


def _beside_tabs(old: Document, straight: Source, rebuilt: Source, target: Target) -> bytes:
    """Return rebuilt with its links mended and its TABs, which are the author's, left; straight where unsure."""
    before, mended = read_behind(straight, old), read_behind(rebuilt, old)
    if before is None or mended is None or _told(before) != _told(mended):
        return straight.raw
    lines = rebuilt.raw.split(b"\n")
    for entry, link in _wrong_links(old, mended, target):
        at = entry.lines["pr-link"] - 1
        if lines[at].startswith(b"  pr-link:"):
            lines[at] = f"  pr-link: {link}".encode()
    return b"\n".join(lines)


def _told(document: Document) -> list[str]:
    return sorted(entry.signature for entry in document.entries)


def _text(block: bytes) -> list[bytes]:
    return [line.rstrip() for line in lines_of(block)]


def _rebuilt(base: bytes, head: bytes) -> bytes | None:
    """Return base followed by the blocks of head that base has not, or None where base's are not all there."""
    old = [block for block in cut_blocks(base) if block.strip()]
    new = []
    position = 0
    for block in cut_blocks(head):
        if position < len(old) and _text(old[position]) == _text(block):
            position += 1
        elif block.strip():
            new.append(block.rstrip(b" \n") + b"\n")
    if position < len(old):
        return None
    return base + (separator_after(base) if new else b"") + b"\n".join(new)


def _relinked(old: Document, new: Document, target: Target) -> bytes:
    return with_links(new, [(entry, link) for entry, link in _wrong_links(old, new, target) if new.link_line(entry)])


def _wrong_links(old: Document, new: Document, target: Target) -> list[tuple[Entry, str]]:
    """Return the added entries with another pull request's link, and the right one."""
    if not isinstance(target, int):
        return []
    links = links_of(old.source.raw)
    added = compare(old, new, "written", links).additions
    right = links.of(target)
    return [(entry, right) for entry in added if entry.link != right and not links.is_placeholder(entry.link)]
