"""Runners: which labels exist, which nodes stand behind them, and what hardware they are."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from prony.base.errors import ConfigError
from prony.base.model import Frozen
from prony.base.validate import validate
from prony.base.yamldoc import load_yaml


class Hardware(Frozen):
    """What one node of a label has: DRAM in MiB that jobs may use, and devices (a CPU host counts as one)."""

    available_cpu_dram_mib: Annotated[int, Field(gt=0, alias="available-cpu-dram-mib")]
    gpus_per_node: Annotated[int, Field(gt=0, alias="gpus-per-node")]


class Runners(Frozen):
    """Labels with their nodes, and hardware facts for some labels."""

    file: str = ""
    labels: dict[str, tuple[str, ...]]
    hardware: dict[str, Hardware] = {}

    @field_validator("labels")
    @classmethod
    def _nodes(cls, labels: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for label, nodes in labels.items():
            if not nodes:
                raise ValueError(f"runner label '{label}' cannot be an empty list")
        return labels

    def check_label(self, label: str, where: str) -> None:
        """Raise ConfigError when a label is not declared."""
        if label not in self.labels:
            raise ConfigError(
                f"{where}: runner '{label}' is not a label of {self.file}",
                allowed=", ".join(self.labels),
                fix=f"add the label and its nodes under 'labels:' in {self.file}, or use one that exists",
            )


def load_runners(path: Path) -> Runners:
    """Read a runners file. Raises ConfigError with file:line."""
    document = load_yaml(path)
    if "labels" not in document:
        raise ConfigError(f"{path}:{document.line}: no 'labels' mapping", allowed="labels, hardware")
    return validate(Runners, document, "runners").model_copy(update={"file": str(path)})
