"""The load file that may stand beside a master config."""

from pathlib import Path

from prony.base.errors import ConfigError
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml
from prony.spec.expression import check_whole
from prony.spec.load import LOAD_NAMES, LoadRules


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
    return rules
