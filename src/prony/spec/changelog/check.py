"""The gate: strict byte and entry rules, and everything that selection would refuse."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Where
from prony.spec.changelog.batch import Modifiers, check_batch, matches, near
from prony.spec.changelog.behind import read_behind
from prony.spec.changelog.compare import Change, Links, Target, compare, links_of
from prony.spec.changelog.document import Document, Source, parse
from prony.spec.changelog.entry import MEND, Entry, RefusedError, fault

if TYPE_CHECKING:
    from prony.spec.changelog.select import Masters

_NO_MODIFIERS = Modifiers()


def check(base: Source, head: Source, target: Target, masters: "Masters | None" = None) -> tuple[Finding, ...]:
    """Return what the gate refuses; nothing when it accepts.

    target: the pull request's number, or `main` where links must be final. Without masters, keys are not looked up.
    """
    links = links_of(base.raw)
    change, faults = judge(base, head, target, links)
    if change is not None and not faults:
        return tuple(_selection_findings(change, masters))
    if change is None:
        change = _behind(base, head, target, links)
        tabs = {item.where for item in faults if item.rule == "changelog-tab"}
        more = change.faults if change else ()
        # What stands on the line of a TAB may well be that TAB.
        faults += tuple(item for item in more if item.where not in tabs)
    if change is not None:
        faults += _all_unknown_keys(change, masters)
    return tuple(sorted(faults, key=lambda item: item.where.line if item.where else 0))


def _behind(base: Source, head: Source, target: Target, links: Links) -> Change | None:
    old = parse(base)
    new = None if old.faults else read_behind(head, old)
    return None if new is None else compare(old, new, target, links)


def judge(base: Source, head: Source, target: Target, links: Links) -> tuple[Change | None, tuple[Finding, ...]]:
    """Apply the strict rules alone; the change is None when a file cannot be read as entries."""
    old = parse(base)
    new = parse(head, old)
    broken = tuple(_broken(old, new))
    if broken:
        return None, broken
    change = compare(old, new, target, links)
    return change, change.faults


def _broken(base: Document, head: Document) -> Iterator[Finding]:
    for finding in base.faults:
        fix = finding.fix.removesuffix(f", or {MEND}")  # only head is mended
        yield finding.model_copy(
            update={
                "message": f"the base file is broken already: {finding.message}",
                "fix": f"mend it on main first: {fix}" if fix else "mend it on main first",
            }
        )
    yield from head.faults


def _selection_findings(change: Change, masters: "Masters | None") -> Iterator[Finding]:
    entries = tuple(entry.asked for entry in change.additions)
    file = change.head.source.file
    if not entries:
        if not change.corrections:
            yield fault(
                "no-change", Where(file=file), "nothing was added: no benchmark would run",
                allowed="new entries at the end, or corrected links",
                fix="append an entry: prony changelog add --keys KEY --description TEXT",
            )  # fmt: skip
        return
    try:
        check_batch(entries, _NO_MODIFIERS)
    except ConfigError as error:
        append = next(entry for entry in change.additions if entry.asked.append_only)
        yield _from_error("append-only", change.head.where(append, "append-only"), error)
        return
    if masters is None:
        return
    unknown = _all_unknown_keys(change, masters)
    yield from unknown
    if not unknown:
        yield from _refused(change, masters)


def placed(change: Change | None, masters: "Masters", error: ConfigError) -> ConfigError:
    """Return the error of selection, with its place where it tells of a key that an added entry names."""
    for finding in _all_unknown_keys(change, masters) if change else ():
        if finding.message == error.message:
            return RefusedError(finding)
    return error


def _refused(change: Change, masters: "Masters") -> Iterator[Finding]:
    from prony.spec.changelog.select import select

    try:
        select([entry.asked for entry in change.additions], masters, _NO_MODIFIERS)
    except ConfigError as error:
        first = change.additions[0]
        rule = "append-only" if first.asked.append_only else "selection"
        yield _from_error(rule, change.head.where(first, "append-only"), error)


def _all_unknown_keys(change: Change, masters: "Masters | None") -> tuple[Finding, ...]:
    if masters is None:
        return ()
    return tuple(item for entry in change.additions for item in _unknown_keys(change.head, entry, masters))


def _unknown_keys(head: Document, entry: Entry, masters: "Masters") -> Iterator[Finding]:
    known = list(masters.head.entries)
    where = head.where(entry)
    for name in entry.asked.config_keys:
        if any(matches(name, key) for key in known):
            continue
        at = head.block(entry).find(f"- {name}".encode())
        place = head.source.where(entry.start + at) if at >= 0 else where
        what = f"wildcard '{name}' matches no key" if "*" in name else f"'{name}' is no key"
        yield fault(
            "unknown-key", place, f"{what} of the master configs", allowed=near(name, known),
            fix="write a key that the master configs have, or add the config in the same change",
        )  # fmt: skip


def _from_error(rule: str, where: Where, error: ConfigError) -> Finding:
    return fault(rule, where, error.message, allowed=error.allowed, fix=error.fix)
