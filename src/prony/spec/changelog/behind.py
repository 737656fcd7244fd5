"""What stands behind faults of bytes: a file read as if line ends, TABs and the final newline were mended."""

import re
from dataclasses import replace

from prony.spec.changelog.document import Document, Source, parse

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r+\n")
_INDENT = re.compile(rb"(?m)^[ \t]+")
_READABLE = frozenset(f"changelog-{name}" for name in ("final-newline", "cr", "tab", "bom"))


def straight(raw: bytes) -> bytes:
    """Return the bytes without a byte order mark, with LF line ends, the last line included."""
    while raw.startswith(_BOM):
        raw = raw.removeprefix(_BOM)
    return _LINE_END.sub(b"\n", raw if raw.endswith(b"\n") or not raw else raw + b"\n")


def read_behind(source: Source, known: Document) -> Document | None:
    """Return the entries behind faults of bytes, at the same lines; None where they cannot be read."""
    found = parse(source, known)
    if not found.faults or not {item.rule for item in found.faults} <= _READABLE:
        return None if found.faults else found
    spaced = _INDENT.sub(lambda match: match[0].replace(b"\t", b"    "), straight(source.raw)).replace(b"\t", b" ")
    behind = parse(replace(source, raw=spaced), known)
    return None if behind.faults else behind
