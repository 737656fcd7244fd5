"""How a plan differs from the one that a sweep was started with, in the words of job.json."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from prony.base.errors import ConfigError
from prony.plan.job import Job
from prony.run.folder import JobFolder
from prony.run.ledger import JobEntry

# Not part of what is run: a job keeps its key when these change.
_NAMES = ("config_file", "config_digest", "time_limit_s")
_MOST_FIELDS, _MOST_JOBS = 6, 4
_MOST_CHARACTERS = 60


def describe(gone: Sequence[tuple[JobEntry, JobFolder]], new: Sequence[Job]) -> list[str]:
    """Return one line per change: which fields of which jobs, which jobs are new, which are gone."""
    left = {(job.point.label, job.repeat, job.key): job for job in new}
    changed: dict[tuple[str, ...], list[str]] = defaultdict(list)
    lost: list[str] = []
    for entry, folder in gone:
        old = _read(folder)
        match = next((mark for mark in left if old is not None and mark[:2] == (entry.label, old.repeat)), None)
        if old is None or match is None:
            lost.append(entry.label)
        else:
            changed[tuple(differences(old, left.pop(match)))].append(entry.label)
    lines = [f"{_some(labels, _MOST_JOBS)}: {_some(fields, _MOST_FIELDS)}" for fields, labels in changed.items()]
    lines += [f"new: {_some([mark[0] for mark in left], _MOST_JOBS)}"] if left else []
    return lines + ([f"gone: {_some(lost, _MOST_JOBS)}"] if lost else [])


def differences(old: Job, new: Job) -> Iterator[str]:
    """Name the fields in which two jobs differ, with both values: load.requests 8 → 16."""
    was, now = (dict(_leaves(job.model_dump(mode="json", exclude=set(_NAMES)), "")) for job in (old, new))
    for place in dict.fromkeys([*was, *now]):
        if was.get(place) != now.get(place):
            yield f"{place} {_value(was, place)} → {_value(now, place)}"


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from _leaves(below, f"{place}.{name}" if place else name)
    elif isinstance(value, list) and any(isinstance(below, dict | list) for below in value):
        for at, below in enumerate(value):
            yield from _leaves(below, f"{place}[{at}]")
    else:
        yield place, value


def _value(leaves: dict[str, Any], place: str) -> str:
    if place not in leaves:
        return "nothing"
    text = " ".join(map(str, leaves[place])) if isinstance(leaves[place], list) else str(leaves[place])
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _read(folder: JobFolder) -> Job | None:
    try:
        return folder.job()
    except ConfigError:
        return None


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
