"""Which version of a row is shown: decided row by row from those that the store holds; none is ever lost."""

from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from prony.base.finding import Finding
from prony.base.model import digest
from prony.measure.result import Row
from prony.store.schema import results


@dataclass(frozen=True)
class Version:
    """One stored version of a row; id 0 when it is not stored yet, `latest` when it is the one shown."""

    id: int
    version: int
    digest: str
    latest: bool
    row: str


class Ingest:
    """What one ingest changes: rows to insert, ids that are shown no more and that are shown again."""

    def __init__(self, known: dict[str, list[Version]]) -> None:
        self._known = known
        self.inserts: list[dict[str, Any]] = []
        self.superseded: list[int] = []
        self.reinstated: list[int] = []
        self.findings: list[Finding] = []
        self.added = self.changed = self.unchanged = 0

    def take(self, row: Row, *, final: bool) -> None:
        """Take one row; `final` when no later row of this ingest has its key, so that it decides what is shown."""
        content, mark = row.model_dump_json(), digest(row)
        versions = self._known.setdefault(row.key, [])
        shown = next((version for version in versions if version.latest), None)
        same = next((version for version in versions if version.digest == mark), None)
        if _is_known(row, same, shown, final=final):
            self.unchanged += 1
        elif same is not None:
            self._show(versions, same)
            self._tell_change(row, same.version, shown)
        else:
            new = Version(id=0, version=len(versions) + 1, digest=mark, latest=True, row=content)
            versions.append(replace(new, latest=False))
            self.inserts.append({**_columns(row), "version": new.version, "digest": mark, "row": content})
            self._show(versions, versions[-1])
            if shown is None:
                self.added += 1
            else:
                self._tell_change(row, new.version, shown)

    def _show(self, versions: list[Version], wanted: Version) -> None:
        """Make one version the shown one, in memory and in what will be written."""
        for index, version in enumerate(versions):
            latest = version is wanted
            if version.latest != latest:
                versions[index] = replace(version, latest=latest)
                self._mark(version, latest)

    def _mark(self, version: Version, latest: bool) -> None:
        if not version.id:
            next(line for line in self.inserts if line["digest"] == version.digest)["latest"] = latest
            return
        to, other = (self.reinstated, self.superseded) if latest else (self.superseded, self.reinstated)
        if version.id in other:
            other.remove(version.id)
        else:
            to.append(version.id)

    def _tell_change(self, row: Row, number: int, shown: Version | None) -> None:
        self.changed += 1
        before = f", version {shown.version} is kept" if shown else ""
        self.findings.append(
            Finding(
                rule="store/changed",
                severity="warn",
                message=f"result {row.key[:12]} came again with other content: version {number} is shown from"
                f" now on{before}",
                fix="compare both with: prony results show KEY --json",
                evidence=f"{row.key} version {number} from {row.source}",
            )
        )


def _is_known(row: Row, same: Version | None, shown: Version | None, *, final: bool) -> bool:
    if same is not None:
        return same is shown or not final
    return shown is not None and _says_less(row, shown.row)


def _says_less(row: Row, known: str) -> bool:
    """An imported row that repeats some of what a known one says adds nothing: some sources leave columns out."""
    if row.origin != "imported":
        return False
    try:
        whole = Row.model_validate_json(known)
    except ValidationError:
        return False
    values = {(found.metric, found.stat): found.value for found in whole.measurements}
    same = all(values.get((found.metric, found.stat)) == found.value for found in row.measurements)
    hidden = {"measurements": (), "verdicts": (), "image": None}
    bare = row.model_copy(update=hidden) == whole.model_copy(update=hidden)
    return same and bare and row.image in (None, whole.image)


def _columns(row: Row) -> dict[str, Any]:
    names = [column.name for column in results.columns]
    hot = {name: getattr(row, name) for name in names if name in Row.model_fields or name == "valid"}
    return {**hot, "latest": False}
