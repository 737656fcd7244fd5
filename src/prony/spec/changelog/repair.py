"""What can be mended without knowing what the author meant: line ends, blank lines, place at the end, links."""

from dataclasses import replace

from prony.spec.changelog.added import cut_blocks, lines_of
from prony.spec.changelog.compare import Target, compare, links_of
from prony.spec.changelog.document import Document, Source, parse
from prony.spec.changelog.merge import with_links

_BOM = b"\xef\xbb\xbf"


def repair(base: Source, head: Source, target: Target) -> bytes:
    """Return head mended where that is mechanical; what is left for the author is left as it was.

    New entries move behind base's bytes with one empty line before each; a link that is not that of the pull request
    becomes it. Where old entries were edited or deleted, only line ends and the final newline are mended.
    """
    old = parse(base)
    if old.faults:
        return head.raw
    straight = replace(head, raw=_straight(head.raw))
    rebuilt = _rebuilt(base.raw, straight.raw)
    if rebuilt is None:
        return straight.raw
    mended = parse(replace(head, raw=rebuilt), old)
    before = parse(straight, old)
    if mended.faults or (not before.faults and _told(before) != _told(mended)):
        return straight.raw
    return _relinked(old, mended, target)


def _straight(raw: bytes) -> bytes:
    """Return the bytes without a byte order mark, with LF line ends, the last line included."""
    raw = raw.removeprefix(_BOM).replace(b"\r\n", b"\n")
    return raw if raw.endswith(b"\n") or not raw else raw + b"\n"


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
    return base + (b"" if base.endswith(b"\n\n") or not new else b"\n") + b"\n".join(new)


def _relinked(old: Document, new: Document, target: Target) -> bytes:
    if not isinstance(target, int):
        return new.source.raw
    links = links_of(old.source.raw)
    added = compare(old, new, "written", links).additions
    wrong = [entry for entry in added if entry.link != links.of(target) and not links.is_placeholder(entry.link)]
    return with_links(new, [(entry, links.of(target)) for entry in wrong if new.link_line(entry)])
