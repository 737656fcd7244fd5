"""What can be mended without knowing what the author meant: line ends, blank lines, place at the end, links."""

from prony.spec.changelog.added import cut_blocks, lines_of
from prony.spec.changelog.compare import Links, Target, compare, links_of
from prony.spec.changelog.document import Source, parse
from prony.spec.changelog.merge import with_links

_BOM = b"\xef\xbb\xbf"


def repair(base: Source, head: Source, target: Target) -> bytes:
    """Return head mended where that is mechanical; what is left for the author is left as it was.

    New entries move behind base's bytes with one empty line before each; a link that is not that of the pull request
    becomes it. Where old entries were edited or deleted, only line ends and the final newline are mended.
    """
    raw = head.raw.removeprefix(_BOM) if not base.raw.startswith(_BOM) else head.raw
    if b"\r" not in base.raw:
        raw = raw.replace(b"\r\n", b"\n")
    rebuilt = _rebuilt(base.raw, raw)
    if rebuilt is None:
        return raw if raw.endswith(b"\n") or not raw else raw + b"\n"
    mended = Source(rebuilt, head.file, head.label)
    return _relinked(base, mended, target, links_of(base.raw))


def _rebuilt(base: bytes, head: bytes) -> bytes | None:
    """Return base followed by the blocks of head that base has not, or None where base's are not all there."""
    if not base.endswith(b"\n"):
        return None
    head = head if head.endswith(b"\n") else head + b"\n"
    old = [block for block in cut_blocks(base) if block.strip()]
    new = []
    position = 0
    for block in cut_blocks(head):
        if position < len(old) and lines_of(old[position]) == lines_of(block):
            position += 1
        elif block.strip():
            new.append(block.rstrip(b" \n") + b"\n")
    if position < len(old):
        return None
    if not new:
        return base
    return base + (b"" if base.endswith(b"\n\n") else b"\n") + b"\n".join(new)


def _relinked(base: Source, head: Source, target: Target, links: Links) -> bytes:
    old, new = parse(base), parse(head)
    if not isinstance(target, int) or old.faults or new.faults:
        return head.raw
    change = compare(old, new, "any", links)
    wrong = [
        entry
        for entry in change.additions
        if entry.link != links.of(target) and not links.is_placeholder(entry.link) and "pr-link" in entry.lines
    ]
    return with_links(new, [(entry, links.of(target)) for entry in wrong])
