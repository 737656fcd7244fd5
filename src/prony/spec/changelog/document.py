"""Bytes to entries, under the strict rules of the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

from prony.base.finding import Finding, Where
from prony.base.yamldoc import compose
from prony.spec.changelog.entry import MEND, ChangelogEntry, Entry, explain, fault, signature_of

_BOM = b"\xef\xbb\xbf"
_START = "- config-keys:"
_ENTRY = re.compile(rb"(?m)^- config-keys:[^\r\n]*\n")
_LINK_LINE = re.compile(rb"(?m)^  pr-link:[^\r\n]*")
_BREAK = re.compile("\n|\x85|\u2028|\u2029".encode())
"""What ends a line in YAML."""
_CONFLICT = re.compile(rb"(?m)^(?:<{7}|>{7}|\|{7}|={7})(?=[ \n]|$)")
_TEXT, _SEQUENCE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:seq"
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "bool", "int", "null", "seq", "map"))
_HIDDEN = (
    ("\x85", "line-break", "which YAML takes for the end of a line"),
    ("\u2028", "line-break", "which YAML takes for the end of a line"),
    ("\u2029", "line-break", "which YAML takes for the end of a line"),
)
_BLANK = b" \t\r\n"


@dataclass(frozen=True)
class Source:
    """A version of the file: its bytes, and the path shown with line numbers."""

    raw: bytes
    file: str

    def line_at(self, offset: int) -> int:
        """Return the line (from 1) of a byte."""
        return self.raw.count(b"\n", 0, offset) + 1

    def where(self, offset: int) -> Where:
        """Return the place of a byte."""
        return Where(file=self.file, line=self.line_at(offset))


@dataclass(frozen=True)
class Document:
    """A version with its entries; none when there are faults, or nothing in the file."""

    source: Source
    entries: tuple[Entry, ...] = ()
    faults: tuple[Finding, ...] = ()

    def where(self, entry: Entry, field: str = "") -> Where:
        """Return the place of an entry or of one of its fields."""
        return Where(file=self.source.file, line=entry.lines.get(field, entry.line))

    def block(self, entry: Entry) -> bytes:
        """Return the bytes of an entry without the blank lines after it."""
        return self.source.raw[entry.start : entry.content_end]

    def link_line(self, entry: Entry) -> tuple[int, int] | None:
        """Return where in an entry's block the line of its link begins and ends, None where it shares one."""
        block = self.block(entry)
        starts = [0, *(found.end() for found in _BREAK.finditer(block))]
        down = entry.lines.get("pr-link", entry.line) - entry.line
        line = _LINK_LINE.match(block, starts[down]) if down < len(starts) else None
        return line.span() if line else None


def parse(source: Source, known: Document | None = None, *, is_change: bool = True) -> Document:
    """Read a change log. Faults stand in the order in which the reference's merge tool would meet them.

    known: another version; entries of the bytes that both begin with are taken from it instead of being read again.
    is_change: whether what known has not is judged as new, that is, for characters that only look harmless.
    """
    if not source.raw:
        return Document(source)  # a change log that is not there yet
    faults = tuple(_byte_faults(source))
    if known is not None and is_change and not any(item.rule == "changelog-utf8" for item in faults):
        faults += tuple(_hidden(known.source.raw, source))
    if any(item.rule != "changelog-final-newline" for item in faults):
        return Document(source, faults=faults)
    text = source.raw.decode("utf-8")
    node, broken = _compose(source, text)
    if broken is not None:
        return Document(source, faults=(*faults, broken))
    found = _entries(source, text, node, _shared(source, known))
    if isinstance(found, Finding):
        return Document(source, faults=(*faults, found))
    return Document(source, faults=faults) if faults else Document(source, found)


def _byte_faults(source: Source) -> Iterator[Finding]:
    """Yield what is wrong with the bytes, each kind once, at its first place."""
    raw = source.raw
    if not raw.endswith(b"\n"):
        yield fault(
            "final-newline", source.where(max(0, len(raw) - 1)), "the last line does not end with a newline",
            allowed="a newline after the last line", fix=f"end the file with one newline, or {MEND}",
        )  # fmt: skip
    kinds = (
        (b"\r", "cr", "carriage returns (CRLF line ends)", f"save with LF line ends, or {MEND}"),
        (b"\t", "tab", "a TAB", "write spaces: indents are 2 and 4 spaces"),
        (b"\0", "nul", "a NUL byte", "remove it; save as UTF-8 (not UTF-16)"),
    )
    for byte, rule, what, fix in kinds:
        at = raw.find(byte)
        if at >= 0:
            count = raw.count(byte)
            message = f"contains {what}" + (f", {count} in all" if count > 1 else "")
            yield fault(rule, source.where(at), message, allowed="LF, spaces and printable UTF-8", fix=fix)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        yield fault(
            "utf8", source.where(error.start), f"byte 0x{raw[error.start]:02x} is not UTF-8", allowed="UTF-8",
            fix="save the file as UTF-8",
        )  # fmt: skip
        return
    if raw.startswith(_BOM):
        yield fault(
            "bom", source.where(0), "starts with a byte order mark", allowed="UTF-8 without one",
            fix=f"save as UTF-8 without BOM, or {MEND}",
        )  # fmt: skip


def _hidden(old: bytes, new: Source) -> Iterator[Finding]:
    """Yield the added characters that end a line for YAML, or that nobody sees, each kind once."""
    for char, rule, what in _HIDDEN:
        mark = char.encode()
        if new.raw.count(mark) <= old.count(mark):
            continue
        at = new.raw.find(mark, max(0, common_prefix(old, new.raw) - len(mark) + 1))
        if at > 0:
            yield fault(
                rule, new.where(at), f"contains U+{ord(char):04X}, {what}", allowed="LF, spaces and printable UTF-8",
                fix="remove it; begin a new line with a newline (LF) alone",
            )  # fmt: skip


def _compose(source: Source, text: str) -> tuple[yaml.Node | None, Finding | None]:
    try:
        return compose(text), None
    except RecursionError:
        where = Where(file=source.file)
        return None, fault("yaml", where, "nested too deeply", fix="write entries as the others are written")
    except yaml.YAMLError as error:
        conflict = _CONFLICT.search(source.raw)
        if conflict:
            return None, fault(
                "conflict", source.where(conflict.start()), "a merge conflict was left in the file",
                fix="merge with 'prony changelog resolve --base … --ours … --theirs …', or keep main's bytes and "
                "append your entry",
            )  # fmt: skip
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = Where(file=source.file, line=mark.line + 1 if mark else 0)
        problem = getattr(error, "problem", None) or str(error)
        return None, fault("yaml", where, f"not YAML: {problem}", fix="mend the syntax at that line")


def _shared(source: Source, known: Document | None) -> tuple[Entry, ...]:
    """Return the entries that lie, with the line that follows them, in the common beginning of two versions."""
    if known is None or not known.entries:
        return ()
    end = common_prefix(known.source.raw, source.raw)
    # The last entry that starts in the beginning may go on behind it.
    return tuple(entry for entry in known.entries if entry.start + len(_START) <= end)[:-1]


def common_prefix(old: bytes, new: bytes) -> int:
    """Return how many bytes two versions begin with alike."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] == new[:middle] else (low, middle - 1)
    return low


def _entries(
    source: Source, text: str, root: yaml.Node | None, shared: tuple[Entry, ...]
) -> tuple[Entry, ...] | Finding:
    """Turn the composed root into entries, or say what it is instead."""
    if not isinstance(root, yaml.SequenceNode):
        return fault(
            "root", Where(file=source.file, line=1), "the file is no list of entries",
            allowed="entries that start with '- config-keys:'", fix="keep the list that the base file has",
        )  # fmt: skip
    if not root.value:
        return fault(
            "root", Where(file=source.file, line=root.start_mark.line + 1), "the list holds no entry",
            allowed="entries that start with '- config-keys:'", fix="keep the list that the base file has",
        )  # fmt: skip
    twice = _duplicate(source, root.value[len(shared) :])
    if twice is not None:
        return twice
    lines = text.splitlines()
    starts = sum(line.startswith(_START) for line in lines)
    spans = _spans(source.raw)
    # A node's mark points behind the dash, on the same line.
    odd = [node for node in root.value if not lines[node.start_mark.line].startswith(_START)]
    if odd or not starts == len(root.value) == len(spans):
        return _misplaced(source, root, starts, odd)
    entries = list(shared)
    fresh = list(zip(root.value, spans, strict=True))[len(shared) :]
    for number, (node, span) in enumerate(fresh, len(shared) + 1):
        entry = _entry(source, number, node, span)
        if isinstance(entry, Finding):
            return entry
        entries.append(entry)
    return tuple(entries)


def _misplaced(source: Source, root: yaml.SequenceNode, starts: int, odd: list[yaml.Node]) -> Finding:
    line = odd[0].start_mark.line + 1 if odd else 1
    return fault(
        "entry-start", Where(file=source.file, line=line),
        f"{len(root.value)} entries, but {starts} lines that start with '{_START}'",
        allowed=f"each entry starts with '{_START}' in the first column",
        fix=f"put 'config-keys' first and '{_START}' in the first column",
    )  # fmt: skip


def _duplicate(source: Source, nodes: list[yaml.Node]) -> Finding | None:
    """Return the first key that stands twice in one mapping."""
    pending, seen = nodes[::-1], set()
    while pending:
        node = pending.pop()
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending += reversed(node.value)
            continue
        lines: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else ("", "")
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and name in lines:
                return fault(
                    "duplicate-key", Where(file=source.file, line=line),
                    f"'{key.value}' stands twice in one entry (first at line {lines[name]})",
                    allowed="each field once", fix="keep one of the two; the last would silently win",
                )  # fmt: skip
            lines[name] = line
            pending.append(value)
    return None


def _entry(source: Source, number: int, node: yaml.Node, span: tuple[int, int]) -> Entry | Finding:
    where = Where(file=source.file, line=node.start_mark.line + 1)
    if not isinstance(node, yaml.MappingNode):
        return fault(
            "entry", where, f"entry {number} is no mapping", allowed="fields and values",
            fix="write the fields below '- config-keys:', each as 'name: value'",
        )  # fmt: skip
    tagged = _tagged(source, number, node)
    if tagged is not None:
        return tagged
    try:
        values = _values(node)
        asked = ChangelogEntry.model_validate(values)
    except ValidationError as error:
        return explain(error, number, where, _line_of(node, error))
    except (yaml.YAMLError, ValueError, TypeError, LookupError, RecursionError) as error:
        return fault("yaml", where, f"entry {number} cannot be read: {error}", fix="put values in quotes")
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
    link = str(values.get("pr-link") or "")
    return Entry(asked, signature_of(values), link, where.line, lines, *span)


def _tagged(source: Source, number: int, node: yaml.Node) -> Finding | None:
    """Return the first value that is neither text, a truth value, a whole number, nothing, a list nor a mapping."""
    pending, seen = [node], set()
    while pending:
        item = pending.pop()
        if item.tag not in _PLAIN_TAGS:
            kind = item.tag.rsplit(":", 1)[-1]
            return fault(
                "tag", Where(file=source.file, line=item.start_mark.line + 1),
                f"entry {number}: a value of the YAML type '{kind}'", allowed="texts, true, false, integers, lists",
                fix="put it in quotes if text is meant; else write it without a tag, merge key or fraction",
            )  # fmt: skip
        if isinstance(item, yaml.ScalarNode) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, yaml.SequenceNode):
            pending += reversed(item.value)
        else:
            pending += [part for pair in reversed(item.value) for part in reversed(pair)]
    return None


def _values(node: yaml.MappingNode) -> Any:
    """Return the mapping as a safe loader reads it; texts and lists of texts, which most are, without its detours."""
    values: dict[str, Any] = {}
    for key, value in node.value:
        if _is_text(key) and _is_text(value):
            values[key.value] = value.value
        elif _is_text(key) and value.tag == _SEQUENCE and all(_is_text(item) for item in value.value):
            values[key.value] = [item.value for item in value.value]
        else:
            return yaml.constructor.SafeConstructor().construct_document(node)
    return values


def _is_text(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _TEXT


def _line_of(node: yaml.MappingNode, error: ValidationError) -> int:
    """Return the line of the field, or of the list item, that validation refused."""
    first = min(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
    loc = (*first["loc"], "", "")
    for key, value in node.value:
        if key.value == str(loc[0]):
            item = loc[1]
            if isinstance(value, yaml.SequenceNode) and isinstance(item, int) and item < len(value.value):
                return int(value.value[item].start_mark.line) + 1
            return int(key.start_mark.line) + 1
    return 0


def _spans(raw: bytes) -> list[tuple[int, int]]:
    """Return (start, end of the last line that is not blank) of each entry."""
    starts = [match.start() for match in _ENTRY.finditer(raw)]
    ends = [*starts[1:], len(raw)] if starts else []
    return [(start, content_end(raw, start, end)) for start, end in zip(starts, ends, strict=True)]


def content_end(raw: bytes, start: int, end: int) -> int:
    """Return where the last line that is not blank ends, its newline included."""
    stripped = start + len(raw[start:end].rstrip(_BLANK))
    newline = raw.find(b"\n", stripped, end)
    return end if newline < 0 else newline + 1
