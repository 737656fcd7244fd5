"""What a change does to the change log, seen from the check before a push."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Where
from prony.base.yamldoc import YamlMap
from prony.gate.diff import MatrixDiff
from prony.gate.document import Config
from prony.gate.git import Checkout
from prony.gate.steps import GUIDE, LINK_UNJUDGED
from prony.spec.changelog.check import check
from prony.spec.changelog.compare import Target, links_of
from prony.spec.changelog.document import Document, Source, parse
from prony.spec.changelog.entry import Entry
from prony.spec.changelog.repair import repair
from prony.spec.changelog.select import Masters, matches
from prony.spec.compat.generate import Catalogue, make_catalogue

MERGE_LOG = (
    f"merge the base branch into yours (no rebase: git swaps the sides) with the merge driver perf-changelog, which "
    f"{GUIDE} sets up: it keeps the base's bytes and appends your entries"
)


@dataclass(frozen=True)
class LogChange:
    """The change log at the fork and as it stands; None where there is none."""

    base: Source | None
    head: Source | None

    @property
    def changed(self) -> bool:
        """Whether the bytes differ."""
        return (self.base.raw if self.base else b"") != (self.head.raw if self.head else b"")

    @property
    def before(self) -> Source:
        """The change log at the fork; an empty one where there was none."""
        return self.base or Source(b"", self.head.file if self.head else "")

    @cached_property
    def _mended(self) -> Document:
        """The change log as it stands, without the faults that are mended mechanically."""
        if self.head is None:
            return Document(Source(b"", ""))
        mended = self.repaired("any")
        return parse(self.head if mended is None else replace(self.head, raw=mended))

    @property
    def readable(self) -> bool:
        """Whether it can be said which entries the change appends."""
        return not self._mended.faults

    @cached_property
    def added(self) -> tuple[Entry, ...]:
        """The entries that the change appends, as far as both versions can be read."""
        if not self.changed or self.head is None:
            return ()
        return self._mended.entries[len(parse(self.base).entries) if self.base else 0 :]

    def asks_for(self, key: str) -> bool:
        """Whether an added entry names a key."""
        return any(matches(name, key) for entry in self.added for name in entry.asked.config_keys)

    def repaired(self, target: Target) -> bytes | None:
        """Return the mended bytes, or None where nothing can be mended."""
        if self.head is None or not self.changed:
            return None
        mended = repair(self.before, self.head, target)
        return None if mended == self.head.raw else mended


def read_log_change(checkout: Checkout, path: str, fork: str) -> LogChange:
    """Read the change log at a commit and in the work tree. Raises ConfigError when it cannot be read."""
    base = checkout.read(fork, path) if checkout.has(fork, path) else None
    try:
        head = (checkout.folder / path).read_bytes()
    except FileNotFoundError:
        head = None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", fix="check its permissions") from None
    return LogChange(
        None if base is None else Source(base, f"{path} at {fork[:12]}"),
        None if head is None else Source(head, path),
    )


def changelog_findings(
    log: LogChange, before: Config, head: Config, difference: MatrixDiff | None, target: Target
) -> Iterator[Finding]:
    """Yield what the gate would refuse; a name that this change renamed is told with its new name."""
    if not log.changed:
        return
    if log.head is None:
        yield Finding(
            rule="changelog-deleted",
            severity="error",
            message=f"{log.before.file}: the change log was deleted",
            fix="restore it with 'git checkout', then append an entry",
        )
        return
    renamed = _new_names(difference)
    broken = set(head.names) - {key.name for key in head.keys}
    masters = masters_of(before, head)
    # Where keys of the configs are broken, names are looked up all the same; what selection would make of them is not.
    found = check(log.before, log.head, target, None if broken else masters)
    if broken and masters is not None:
        again = check(log.before, log.head, target, masters)
        found += tuple(one for one in again if one.rule == "changelog-unknown-key" and not _names(one, broken))
    for finding in found:
        yield _with_advice(finding, before, renamed)
    if target == "any":
        yield from _unjudged(log)


def _unjudged(log: LogChange) -> Iterator[Finding]:
    links = links_of(log.base.raw if log.base else b"")
    entries = [entry for entry in log.added if not links.is_placeholder(entry.link)]
    if entries and log.head is not None:
        named = ", ".join(dict.fromkeys(entry.link for entry in entries))
        yield Finding(
            rule=LINK_UNJUDGED, severity="info",
            where=Where(file=log.head.file, line=entries[0].lines.get("pr-link", 0)),
            message=f"link not judged without --pr N: {named}", fix="name the pull request: --pr N",
        )  # fmt: skip


def _names(finding: Finding, keys: set[str]) -> bool:
    """Whether the name that a finding calls unknown is that of one of some keys, or a wildcard that fits one."""
    named = re.search(r"'(.+?)' (is|matches) no key", finding.message)
    return named is not None and any(matches(named[1], key) for key in keys)


def _new_names(difference: MatrixDiff | None) -> dict[str, str]:
    return {item.before.config_key: item.after.config_key for item in difference.renamed} if difference else {}


def _with_advice(finding: Finding, before: Config, renamed: dict[str, str]) -> Finding:
    if finding.rule == "changelog-conflict":
        return finding.model_copy(update={"fix": f"undo this merge ('git merge --abort'), then {MERGE_LOG}"})
    named = re.match(r"'(.+?)' is no key", finding.message)
    if finding.rule != "changelog-unknown-key" or not named or named[1] not in before.names:
        return finding
    new = renamed.get(named[1])
    told = f"this change renamed it to '{new}'" if new else "it is gone with this change"
    fix = f"write '{new}'" if new else "name a key that stays, or keep the key"
    return finding.model_copy(update={"rule": "name-dangling", "message": f"{finding.message}: {told}", "fix": fix})


def masters_of(before: Config, head: Config) -> Masters | None:
    """Return both sides for key look-ups; None where lint has said already why a config cannot be read."""
    if head.unreadable:
        return None
    try:
        after = _catalogue(head)
    except ConfigError:
        return None
    try:
        return Masters(head=after, base=_catalogue(before))
    except ConfigError as error:
        return Masters(head=after, base=error)


def _catalogue(config: Config) -> Catalogue:
    documents: dict[str, YamlMap] = {}
    for key in config.keys:
        document = documents.setdefault(key.where.file, YamlMap(key.where.file, 1))
        document[key.name], document.lines[key.name] = key.written, key.where.line
    return make_catalogue(tuple(documents.values()), config.runners)
