"""The load file that may stand beside a master config."""

import hashlib
from pathlib import Path

from prony.base.errors import ConfigError
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml
from prony.spec.expression import check_whole
from prony.spec.load import LOAD_NAMES, LoadRules, clash_of
from prony.spec.workload import FileWorkload


def load_rules(path: Path) -> LoadRules:
    """Read load rules. Raises ConfigError with file:line, also for an expression that can never be computed."""
    return read_rules(load_yaml(path))


def read_rules(document: YamlMap) -> LoadRules:
    """Validate a load document. Raises ConfigError with file:line."""
    rules = validate(LoadRules, document, "load rules")
    for field, text in (("requests", rules.requests), ("warmups", rules.warmups)):
        try:
            check_whole(text, LOAD_NAMES)
        except ConfigError as error:
            place = f"{document.file}:{document.lines.get(field, document.line)} {field}"
            raise ConfigError(f"{place}: {error.message}", allowed=error.allowed, fix=error.fix) from None
    if (clash := clash_of(rules.endpoint, rules.stream, rules.arrival, rules.workload)) is not None:
        line = document.lines.get(clash.field, document.line)
        raise ConfigError(f"{document.file}:{line} {clash.field}: {clash.reason}", fix=clash.fix)
    return _with_digest(rules, document)


def _with_digest(rules: LoadRules, document: YamlMap) -> LoadRules:
    if not isinstance(rules.workload, FileWorkload):
        return rules
    try:
        workload = resolve_file(rules.workload, Path(document.file).parent)
    except ConfigError as error:
        line = document["workload"].lines.get("file", document.line)
        raise ConfigError(
            f"{document.file}:{line} workload: {error.message}",
            allowed="the path of a file, absolute or from the folder of the load file",
            fix=error.fix,
        ) from None
    return rules.model_copy(update={"workload": workload})


def resolve_file(workload: FileWorkload, folder: Path) -> FileWorkload:
    """Take a workload's file relative to a folder, and note what it holds: other content is other work.

    Raises ConfigError when the file cannot be read, or is not the one whose digest is given.
    """
    path = (folder / workload.file).resolve()
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}", fix="check that the path leads to a readable file"
        ) from None
    if workload.sha256 not in ("", found):
        raise ConfigError(
            f"{path}: is another file than was meant (sha256 {found[:12]}…, given {workload.sha256[:12]}…)",
            fix="restore the file, or leave out sha256",
        )
    return workload.model_copy(update={"file": str(path), "sha256": found})
