"""Runners: which labels exist, which nodes stand behind them, and what hardware they are."""

import difflib
import re
from pathlib import Path
from typing import Annotated

from pydantic import Field

from prony.base.errors import ConfigError
from prony.base.finding import Where
from prony.base.model import Frozen
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml


class Hardware(Frozen):
    """What one node of a label has: DRAM in MiB that jobs may use, and devices (a CPU host counts as one)."""

    available_cpu_dram_mib: Annotated[int, Field(gt=0, alias="available-cpu-dram-mib")]
    gpus_per_node: Annotated[int, Field(gt=0, alias="gpus-per-node")]


_HARDWARE_WORD = re.compile(r"[a-z]+[0-9]+[a-z]*")


def _hardware_word(label: str) -> str:
    found = _HARDWARE_WORD.search(label.removeprefix("cluster:"))
    return found[0] if found else label


class RunnerLabel(Frozen):
    """One label: its nodes, and its hardware where the file says it."""

    name: str
    nodes: tuple[str, ...]
    hardware: Hardware | None = None
    where: Where


class LabelHardware(Frozen):
    """Hardware of a label that has no nodes."""

    name: str
    hardware: Hardware


class Runners(Frozen):
    """The labels of a runners file, and labels for which it states hardware but no nodes."""

    file: str = ""
    labels: tuple[RunnerLabel, ...]
    without_nodes: tuple[LabelHardware, ...] = ()

    def label(self, name: str, where: str) -> RunnerLabel:
        """Return a label. Raises ConfigError when it is not declared."""
        for label in self.labels:
            if label.name == name:
                return label
        near = self.near(name)
        instead = f", or write {' or '.join(near)}" if near else ", or use one that exists"
        raise ConfigError(
            f"{where}: runner '{name}' is not a label of {self.file}",
            allowed=", ".join(near or [label.name for label in self.labels]),
            fix=f"add the label and its nodes under 'labels:' in {self.file}{instead}",
        )

    def near(self, name: str) -> list[str]:
        """Return labels that may be meant: of the same hardware (`h200`, `mi325x`), the most alike first."""
        same = [label.name for label in self.labels if _hardware_word(label.name) == _hardware_word(name)]
        return difflib.get_close_matches(name, same, n=3, cutoff=0.0)


class RunnersFile(Frozen):
    """A runners file as written."""

    labels: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]]
    hardware: dict[str, Hardware] = Field(default_factory=dict)


def load_runners(path: Path) -> Runners:
    """Read a runners file. Raises ConfigError with file:line."""
    document = load_yaml(path)
    return read_runners(document)


def read_runners(document: YamlMap) -> Runners:
    """Validate a runners document. Raises ConfigError with file:line."""
    content = validate(RunnersFile, document, "runners")
    labels = tuple(
        RunnerLabel(
            name=name,
            nodes=nodes,
            hardware=content.hardware.get(name),
            where=Where(file=document.file, line=document["labels"].lines[name]),
        )
        for name, nodes in content.labels.items()
    )
    without = tuple(
        LabelHardware(name=name, hardware=hardware)
        for name, hardware in content.hardware.items()
        if name not in content.labels
    )
    return Runners(file=document.file, labels=labels, without_nodes=without)
