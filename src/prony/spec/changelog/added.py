"""Which entries a change adds, as selection sees it: more forgiving than the gate, old text may not vanish."""

import yaml
from pydantic import ValidationError

from prony.base.errors import ConfigError
from prony.base.model import first_fault
from prony.spec.changelog.document import Source
from prony.spec.changelog.entry import FIELDS, ChangelogEntry

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ITEM = (b"- ", b"-\n", b"-\r")
_LINK = b"  pr-link:"
_HINT = "run 'prony changelog check' on the same files: it says what and where"


def added_entries(base: Source, head: Source) -> tuple[ChangelogEntry, ...]:
    """Return the entries that head has and base has not. Raises ConfigError where the reference would fail."""
    text = _added_text(base, head)
    if not text.strip():
        raise ConfigError(
            f"{head.file}: adds no entry, so nothing would run",
            fix="append an entry: prony changelog add --keys KEY --description TEXT",
        )
    try:
        found = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{head.file}: the added lines are not YAML: {error}", fix=_HINT) from None
    if not found:
        raise ConfigError(f"{head.file}: the added lines hold no entry", fix=_HINT)
    if not isinstance(found, list):
        raise ConfigError(f"{head.file}: the added lines are no list of entries", fix=_HINT)
    return tuple(_entry(value, number, head.file) for number, value in enumerate(found, 1))


def _entry(value: object, number: int, file: str) -> ChangelogEntry:
    try:
        return ChangelogEntry.model_validate(value)
    except ValidationError as error:
        message = f"{file}: added entry {number}: {first_fault(error)}"
        raise ConfigError(message, allowed=", ".join(FIELDS), fix=_HINT) from None


def _added_text(base: Source, head: Source) -> str:
    """Return the added lines; those of a plain append are the suffix, otherwise entries that base has are left out."""
    whole = not base.raw or base.raw.endswith(b"\n")
    plain = whole and head.raw.startswith(base.raw)
    added = head.raw[len(base.raw) :] if plain else b"".join(_new_blocks(base, head))
    try:
        return added.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{head.file}: {error}", allowed="UTF-8", fix="save the file as UTF-8") from None


def _new_blocks(base: Source, head: Source) -> list[bytes]:
    """Return the blocks of head that are left when those of base are taken out in order."""
    old = [block for block in cut_blocks(base.raw) if lines_of(block)]
    added = []
    position = 0
    for block in cut_blocks(head.raw):
        if position < len(old) and _same_lines(old[position], block):
            position += 1
        else:
            added.append(block)
    if position < len(old):
        if _corrects_links_alone(base.raw, head.raw):
            raise ConfigError(
                f"{head.file}: only links were corrected; nothing to run", fix="leave it as it is, or append an entry"
            )
        line = lines_of(old[position])[0].decode(errors="replace")
        raise ConfigError(
            f"{head.file}: an old entry is gone or was edited; it begins in the base with: {line}",
            allowed="entries added at the end", fix=_HINT,
        )  # fmt: skip
    return added


def _corrects_links_alone(base: bytes, head: bytes) -> bool:
    old, new = base.splitlines(), head.splitlines()
    changed = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]]
    return len(old) == len(new) and all(line.startswith(_LINK) for pair in changed for line in pair)


def cut_blocks(raw: bytes) -> list[bytes]:
    """Cut a file before every line that starts a list item in the first column."""
    blocks: list[list[bytes]] = [[]]
    for line in raw.splitlines(keepends=True):
        if line.startswith(_ITEM):
            blocks.append([])
        blocks[-1].append(line)
    return [b"".join(lines) for lines in blocks if lines]


def lines_of(block: bytes) -> list[bytes]:
    """Return the lines of a block that are not blank."""
    return [line for line in block.split(b"\n") if line.strip()]


def _same_lines(old: bytes, new: bytes) -> bool:
    """Whether both hold the same lines; blank lines do not count, nor does a comment that follows the entry."""
    if old == new:
        return True
    was, now = lines_of(old), lines_of(new)
    while len(now) > len(was) and now[-1].lstrip().startswith(b"#"):
        now.pop()
    return was == now
