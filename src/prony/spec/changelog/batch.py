"""What added entries may ask for together, and which keys they name; light, since the gate alone needs no rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.base.errors import ConfigError
from prony.spec.changelog.entry import ChangelogEntry


@dataclass(frozen=True)
class Modifiers:
    """Labels of a pull request: trim_conc keeps the lowest concurrency; evals_only runs no throughput."""

    trim_conc: bool = False
    all_evals: bool = False
    evals_only: bool = False


def check_batch(entries: Sequence[ChangelogEntry], modifiers: Modifiers) -> None:
    """Refuse append-only entries beside others, and with modifiers of evals. Raises ConfigError."""
    append = [entry.append_only for entry in entries]
    if any(append) and not all(append):
        raise ConfigError(
            "some added entries are append-only and others are not",
            allowed="append-only on all added entries or on none", fix="put them into two changes",
        )  # fmt: skip
    if any(append) and (modifiers.all_evals or modifiers.evals_only):
        raise ConfigError(
            "--all-evals and --evals-only ask for evals, which append-only entries never run",
            allowed="--trim-conc", fix="leave --all-evals and --evals-only out",
        )  # fmt: skip


def matching(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that names and wildcards ask for, in order of first mention; '*' alone is special."""
    found: dict[str, None] = {}
    for name in asked:
        hits = [key for key in known if matches(name, key)]
        if not hits:
            if "*" in name:
                message = f"wildcard '{name}' matches no key of the master configs"
            else:
                message = f"'{name}' is no key of the master configs"
            raise ConfigError(message, allowed=near(name, known), fix="write a key of the master configs")
        found.update(dict.fromkeys(hits))
    return tuple(found)


def matches(asked: str, key: str) -> bool:
    """Whether a name or wildcard of an entry asks for a key; '?' and '[' are plain characters."""
    if "*" not in asked:
        return asked == key
    first, *middle, last = asked.split("*")
    if len(first) + len(last) > len(key) or not key.startswith(first) or not key.endswith(last):
        return False
    at, end = len(first), len(key) - len(last)
    for part in middle:
        # The earliest place leaves most to the parts that follow.
        at = key.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def near(name: str, known: Sequence[str]) -> str:
    """Return the known keys that look most like a name, for a message."""
    import difflib

    close = difflib.get_close_matches(name.replace("*", ""), known, n=5, cutoff=0.5)
    return ", ".join(close) if close else f"one of {len(known)} keys"
