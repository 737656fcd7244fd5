"""Links filled in, conflicts resolved: old bytes stay, the result passes the strict rules or there is none."""

from prony.base.errors import ConfigError
from prony.spec.changelog.compare import Change, Target, compare, links_of, separator_after
from prony.spec.changelog.document import Document, Source, parse
from prony.spec.changelog.entry import MEND, Entry, RefusedError

_MANUAL = "resolve it by hand: keep main's file and append what the pull request adds"
_TAKE_MAIN = "take main's file as it is"


def canonicalize(base: Source, head: Source, number: int) -> bytes:
    """Return head with the pull request's address in place of placeholders of appended entries. Raises ConfigError."""
    links = links_of(base.raw)
    old = _readable(base, fix=False)
    change = _passed(compare(old, _readable(head, old), number, links))
    edits = [(entry, links.of(number)) for entry in change.additions if entry.link != links.of(number)]
    result = with_links(change.head, edits)
    _passed(compare(old, _readable(Source(result, head.file), old), number, links))
    return result


def resolve(base: Source, ours: Source, theirs: Source, number: int | None) -> bytes:
    """Return theirs (main) with what ours (the pull request) changed since base. Raises ConfigError.

    number: the pull request's, which appended entries get as their link; with None links stay as they were written.
    """
    links = links_of(base.raw)
    target: Target = "written" if number is None else number
    old = _readable(base, fix=False)
    mine, main = _readable(ours, old), _readable(theirs, old, fix=False)
    change = _passed(compare(old, mine, target, links))
    if change.additions:
        result = _append(change, main, None if number is None else links.of(number))
    elif change.corrections:
        result = _replay(change, main)
    else:
        raise ConfigError(f"{ours.file}: adds no entry and corrects no link: nothing to merge", fix=_TAKE_MAIN)
    _passed(compare(main, _readable(Source(result, theirs.file), main), target, links))
    return result


def with_links(document: Document, edits: list[tuple[Entry, str]]) -> bytes:
    """Return a document's bytes with the links of some entries replaced. Raises ConfigError."""
    raw, pieces, done = document.source.raw, [], 0
    for entry, link in edits:
        pieces += [raw[done : entry.start], _linked(document, entry, link)]
        done = entry.content_end
    result = b"".join([*pieces, raw[done:]])
    links = {entry.start: link for entry, link in edits}
    wanted = [(entry.signature, links.get(entry.start, entry.link)) for entry in document.entries]
    _require(Source(result, document.source.file), document, wanted)
    return result


def _require(result: Source, known: Document, wanted: list[tuple[str, str]]) -> None:
    """Refuse a rewritten file that does not read as the entries, each without its link, and the links it should."""
    found = _readable(result, known).entries
    if [(entry.signature, entry.link) for entry in found] == wanted:
        return
    odd = next((entry.line for entry, pair in zip(found, wanted, strict=False)
                if (entry.signature, entry.link) != pair), 0)  # fmt: skip
    raise ConfigError(
        f"{result.file}: with its links written, the entry at line {odd} would say something else",
        allowed="a link on a line of its own: '  pr-link: ADDRESS'",
        fix="write the entry as the others are written",
    )


def _linked(document: Document, entry: Entry, link: str) -> bytes:
    replacement = f"  pr-link: {link}".encode()
    span = document.link_line(entry)
    if span is None:
        raise ConfigError(
            f"{document.where(entry, 'pr-link')}: the link does not stand on a line of its own",
            allowed="a line that starts with '  pr-link:'", fix="write it on such a line",
        )  # fmt: skip
    block = document.block(entry)
    return block[: span[0]] + replacement + block[span[1] :]


def _readable(source: Source, known: Document | None = None, *, fix: bool = True) -> Document:
    document = parse(source, known, is_change=fix)
    if document.faults:
        first = document.faults[0]
        # Only the version with the change can be mended by a command.
        words = first.fix if fix else first.fix.removesuffix(f", or {MEND}")
        raise RefusedError(first.model_copy(update={"fix": words}))
    return document


def _passed(change: Change) -> Change:
    if change.faults:
        raise RefusedError(change.faults[0])
    return change


def _append(change: Change, main: Document, link: str | None) -> bytes:
    """Append to main what is not there yet."""
    there = {entry.signature for entry in main.entries}
    added = [entry for entry in change.additions if entry.signature not in there]
    blocks = [change.head.block(entry) if link is None else _linked(change.head, entry, link) for entry in added]
    if not blocks:
        raise ConfigError(f"{main.source.file}: main has all added entries already", fix=_TAKE_MAIN)
    raw = main.source.raw
    result = raw + separator_after(raw) + b"\n".join(blocks)
    wanted = [(entry.signature, entry.link) for entry in main.entries]
    wanted += [(entry.signature, entry.link if link is None else link) for entry in added]
    _require(Source(result, main.source.file), main, wanted)
    return result


def _replay(change: Change, main: Document) -> bytes:
    """Correct on main the links that the pull request corrected."""
    edits = []
    for index, (old, new) in enumerate(zip(change.base.entries, change.head.entries, strict=True)):
        if old.same_as(new):
            continue
        if index >= len(main.entries):
            raise ConfigError(
                f"{main.source.file}: entry {index + 1}, whose link was corrected, is not there", fix=_MANUAL
            )
        there = main.entries[index]
        if there.signature != old.signature:
            what = f"entry {index + 1}, whose link was corrected, says something else on main"
            raise ConfigError(f"{main.where(there)}: {what}", fix=_MANUAL)
        if there.link == new.link:
            continue
        if there.link != old.link:
            what = f"main corrected the link of entry {index + 1} to '{there.link}', this change to '{new.link}'"
            raise ConfigError(f"{main.where(there, 'pr-link')}: {what}", fix=_MANUAL)
        edits.append((there, new.link))
    if not edits:
        raise ConfigError(f"{main.source.file}: main has all corrected links already", fix=_TAKE_MAIN)
    return with_links(main, edits)
