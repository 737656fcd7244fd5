"""The load file that may stand beside a master config."""

import hashlib
from pathlib import Path

from prony.base.errors import ConfigError
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml
from prony.spec.expression import check_whole
from prony.spec.load import LOAD_NAMES, LoadRules
from prony.spec.workload import FileWorkload


def load_rules(path: Path) -> LoadRules:
    """Read load rules. Raises ConfigError with file:line, also for an expression that can never be computed."""
    return read_rules(load_yaml(path))


def read_rules(document: YamlMap) -> LoadRules:
    """Validate a load document. Raises ConfigError with file:line."""
    rules = _with_digest(validate(LoadRules, document, "load rules"), document)
    for field, text in (("requests", rules.requests), ("warmups", rules.warmups)):
        try:
            check_whole(text, LOAD_NAMES)
        except ConfigError as error:
            place = f"{document.file}:{document.lines.get(field, document.line)} {field}"
            raise ConfigError(f"{place}: {error.message}", allowed=error.allowed, fix=error.fix) from None
    return rules


def _with_digest(rules: LoadRules, document: YamlMap) -> LoadRules:
    """Take a workload's file relative to the load file, and note what it holds: other content is other work."""
    if not isinstance(rules.workload, FileWorkload):
        return rules
    path = Path(document.file).parent / rules.workload.file
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        line = document["workload"].lines.get("file", document.line)
        raise ConfigError(
            f"{document.file}:{line} workload: {path}: cannot be read: {error.strerror}",
            allowed="a path from the folder of the load file",
            fix="check the path",
        ) from None
    return rules.model_copy(
        update={"workload": rules.workload.model_copy(update={"file": str(path.resolve()), "sha256": found})}
    )
