"""Names that a change leaves behind, keys that nobody asks to run, and keys that the base branch changed meanwhile."""

from collections.abc import Iterator

from prony.base.finding import Finding, Where
from prony.base.units import counted
from prony.gate.diff import MatrixDiff
from prony.gate.document import Config, Key, LintFinding
from prony.gate.git import Checkout
from prony.gate.logcheck import MERGE_LOG, LogChange

# Archives of what was retired name it on purpose.
ARCHIVES = ("configs/deprecated/",)
_SHOWN = 8


def unfinished(checkout: Checkout) -> Iterator[Finding]:
    """Yield the files that an unfinished merge left in conflict."""
    for path in checkout.unmerged():
        yield LintFinding(
            rule="merge-unfinished", severity="error", where=Where(file=path),
            message="a merge is unfinished: this file is still marked as in conflict",
            fix=f"mend it, 'git add {path}', 'git commit'; or start again: 'git merge --abort'",
        )  # fmt: skip


def unasked(log: LogChange, difference: MatrixDiff) -> Iterator[Finding]:
    """Yield the keys whose points change while no new entry of the change log asks for them."""
    keys = dict.fromkeys(point.config_key for point in difference.to_run)
    missing = [key for key in keys if not log.asks_for(key)]
    if missing and log.head is not None and log.readable:
        names = " ".join(missing[:_SHOWN])
        yield LintFinding(
            rule="changelog-unasked", severity="warn", where=Where(file=log.head.file),
            message=f"{counted(len(missing), 'key')} with new or altered points and no new entry: nothing will run for "
            f"{', '.join(missing[:_SHOWN])}{' …' if len(missing) > _SHOWN else ''}",
            fix=f"prony changelog add --keys {names} --description 'WHAT CHANGED AND WHY'",
        )  # fmt: skip


def dangling(checkout: Checkout, before: Config, head: Config, changelog: str) -> Iterator[Finding]:
    """Yield the places in tracked files that still name a key which this change removes or renames.

    The change log's history may name what is gone.
    """
    gone = tuple(name for name in dict.fromkeys(before.names) if name not in set(head.names))
    for name, path, line in checkout.mentions(gone):
        if path != changelog and not path.startswith(ARCHIVES):
            yield LintFinding(
                rule="name-dangling", severity="warn", key=name, where=Where(file=path, line=line),
                message=f"names '{name}', which this change removes or renames",
                allowed="names of keys that exist", fix="write the new name, or remove the mention",
            )  # fmt: skip


def moved_under(
    checkout: Checkout, fork: str, tip: str, before: Config, now: Config, head: Config, log: LogChange
) -> Iterator[Finding]:
    """Yield the keys that both the base branch, since this one left it, and this change have changed."""
    theirs, ours = _changed_keys(before, now), _changed_keys(before, head)
    for name in sorted(theirs.keys() & ours.keys()):
        key = ours[name] or theirs[name]
        file = key.where.file if key else ""
        yield LintFinding(
            rule="base-moved", severity="warn", key=name, where=key.where if key else None,
            message=f"{name}: the base branch {_verb(before, now, name)} this key too since your branch left it",
            evidence=checkout.last_change(fork, tip, file) if file else "",
            fix="merge the base branch into yours, then look at this key by hand",
        )  # fmt: skip
    path = log.head.file if log.head else ""
    if log.changed and path and checkout.last_change(fork, tip, path):
        yield LintFinding(
            rule="base-changelog", severity="info", where=Where(file=path),
            message="the base branch appended entries meanwhile; a plain merge conflicts at the end of the file",
            evidence=checkout.last_change(fork, tip, path),
            fix=MERGE_LOG,
        )  # fmt: skip


def _changed_keys(before: Config, after: Config) -> dict[str, Key | None]:
    """Return the keys that differ: as they stand after, or None where they are gone."""
    old, new = ({key.name: key for key in config.keys} for config in (before, after))
    names = dict.fromkeys([*old, *new])
    return {
        name: new.get(name)
        for name in names
        if (name in old) != (name in new) or old[name].entry != new[name].entry
    }  # fmt: skip


def _verb(before: Config, now: Config, name: str) -> str:
    if name not in before.names:
        return "added"
    return "changed" if name in now.names else "removed"
