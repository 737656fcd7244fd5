"""The load file that may stand beside a master config."""

from pathlib import Path

from prony.base.validate import validate
from prony.base.yamldoc import load_yaml
from prony.spec.load import LoadRules


def load_rules(path: Path) -> LoadRules:
    """Read load rules. Raises ConfigError with file:line."""
    return validate(LoadRules, load_yaml(path), "load rules")
