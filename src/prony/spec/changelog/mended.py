"""What a repair did, in words, one line each."""

from collections import Counter
from difflib import SequenceMatcher

from prony.base.units import counted
from prony.spec.changelog.added import cut_blocks, lines_of

_BOM = b"\xef\xbb\xbf"
_LINK, _ENTRY = b"  pr-link:", b"- config-keys:"


def mended_lines(base: bytes, head: bytes, mended: bytes) -> tuple[str, ...]:
    """Say what was done to head, in line order; lines are those of the mended file, of removed ones those of head."""
    done = []
    if head.startswith(_BOM) and not mended.startswith(_BOM):
        done.append((1, "byte order mark removed"))
    if (count := head.count(b"\r\n") - mended.count(b"\r\n")) > 0:
        done.append((head.count(b"\n", 0, head.find(b"\r\n")) + 1, f"LF in place of CRLF on {counted(count, 'line')}"))
    if head and not head.endswith(b"\n") and mended.endswith(b"\n"):
        done.append((mended.count(b"\n"), "final newline added"))
    was = head.removeprefix(_BOM).replace(b"\r\n", b"\n")
    done += _changes(base, was if was.endswith(b"\n") else was + b"\n", mended)
    return tuple(f"{line}: {what}" for line, what in sorted(done))


def _changes(base: bytes, old: bytes, new: bytes) -> list[tuple[int, str]]:
    was = list(enumerate(old.split(b"\n")[:-1], 1))
    moved: list[tuple[int, str]] = []
    if new.startswith(base) and not old.startswith(base):
        was, moved = _in_place(base, old, new)
    now = list(enumerate(new.split(b"\n")[:-1], 1))
    start = next((at for at, (a, b) in enumerate(zip(was, now, strict=False)) if a[1] != b[1]), min(len(was), len(now)))
    was, now = was[start:], now[start:]
    gone: list[tuple[int, bytes]] = []
    come: list[tuple[int, bytes]] = []
    done: list[tuple[int, str]] = []
    lines = [line for _, line in was], [line for _, line in now]
    for kind, a, b, c, d in SequenceMatcher(None, *lines, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        before = [pair for pair in was[a:b] if pair[1].strip()]
        after = [pair for pair in now[c:d] if pair[1].strip()]
        alike = len(before) == len(after)
        if alike:
            done += [(there, _replaced(left, right)) for (_, left), (there, right) in zip(before, after, strict=True)]
        gone += [pair for pair in was[a:b] if not (alike and pair in before)]
        come += [pair for pair in now[c:d] if not (alike and pair in after)]
    # Blank lines go with an entry that moves.
    return [*done, *moved, *_come_and_gone(gone, come, blanks=not moved)]


def _in_place(base: bytes, old: bytes, new: bytes) -> tuple[list[tuple[int, bytes]], list[tuple[int, str]]]:
    """Return old's lines, numbered, with its new entries behind those of base, and what moved for that."""
    history = Counter(_text(block) for block in cut_blocks(base))
    stay: list[tuple[int, bytes]] = []
    fresh: list[tuple[int, list[tuple[int, bytes]]]] = []
    left, line = sum(history.values()), 1
    moved: list[int] = []
    for block in cut_blocks(old):
        lines = list(enumerate(block.split(b"\n")[:-1], line))
        if history[_text(block)] > 0:
            history[_text(block)] -= 1
            left -= 1
            stay += lines
        else:
            fresh.append((line, lines))
            if left:
                moved.append(line)
        line += len(lines)
    starts = [at for at, text in enumerate(new.split(b"\n"), 1) if text.startswith(_ENTRY)]
    places = dict(zip((at for at, _ in fresh), starts[len(starts) - len(fresh) :], strict=False))
    told = [(places.get(at, at), f"entry moved here from line {at}") for at in moved]
    return stay + [pair for _, lines in fresh for pair in lines], told


def _text(block: bytes) -> tuple[bytes, ...]:
    return tuple(line.rstrip() for line in lines_of(block))


def _replaced(old: bytes, new: bytes) -> str:
    if old.startswith(_LINK) and new.startswith(_LINK):
        return f"link {_short(old)} → {_short(new)}"
    return f"{_shown(old)} → {_shown(new)}"


def _come_and_gone(
    gone: list[tuple[int, bytes]], come: list[tuple[int, bytes]], *, blanks: bool
) -> list[tuple[int, str]]:
    done = []
    for pairs, what in ((come, "added"), (gone, "removed")):
        for at, line in pairs:
            if line.strip():
                done.append((at, f"{_shown(line)} {what}"))
            elif blanks:
                done.append((at, f"blank line {what}"))
    return done


def _short(line: bytes) -> str:
    return line.removeprefix(_LINK).strip().rsplit(b"/", 1)[-1].decode(errors="replace")


def _shown(line: bytes) -> str:
    return f"'{line.decode(errors='replace')}'"
