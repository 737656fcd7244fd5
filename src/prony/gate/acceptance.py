"""Acceptance lengths that somebody typed, held against the committed curves at the draft length that is served."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from prony.base.errors import ConfigError
from prony.base.finding import Finding, Where
from prony.base.yamldoc import YamlList, YamlMap, load_yaml
from prony.facts.curves import Curve
from prony.recipe.acceptance import METHOD_OF_CURVE

_LENGTH, _SWITCH, _FILE = "SYNTHETIC_ACCEPTANCE_LENGTH=", "SYNTHETIC_ACCEPTANCE=", "CONFIG_FILE="
_SAME = 0.005
"""Curves are committed to two decimals."""


@dataclass(frozen=True)
class Stated:
    """An acceptance length that a file states for a model, and where."""

    length: float
    model: str
    where: Where
    key: str


@dataclass(frozen=True)
class Drafter:
    """How a launch file drafts: method as curves name it, tokens in a row, and the file."""

    method: str
    steps: int
    file: str


def check_acceptance(configs: Iterable[Path], root: Path | None, curves: Sequence[Curve]) -> tuple[Finding, ...]:
    """Return what does not agree. root: where launch files lie, None when only the master's own words are at hand.

    Raises ConfigError for files that cannot be read.
    """
    if root is not None and not root.is_dir():
        raise ConfigError(f"{root}: no such folder of launch files", fix="check the path")
    findings: dict[str, Finding] = {}
    for path in configs:
        document = load_yaml(path)
        for key in document:
            if isinstance(document[key], YamlMap):
                for finding in _of_key(key, document[key], root, curves):
                    findings.setdefault(f"{finding.where} {finding.message}", finding)
    return tuple(findings.values())


def _of_key(key: str, entry: YamlMap, root: Path | None, curves: Sequence[Curve]) -> Iterator[Finding]:
    model = str(entry.get("model", ""))
    for settings in _settings(entry):
        named = {text.partition("=")[0]: (text, line) for text, line in zip(settings, settings.lines, strict=True)}
        launch = _launch_file(named, root)
        found = _drafter(launch) if launch else None
        said = named.get(_LENGTH[:-1])
        if said is not None and isinstance(said[0], str):
            stated = _stated(said[0].removeprefix(_LENGTH), model, Where(file=entry.file, line=said[1]), key)
            yield from _held(stated, found, curves)
        if launch is not None:
            for length, line in _lengths_in(launch):
                yield from _held(Stated(length, model, Where(file=launch.file, line=line), key), found, curves)


def _settings(node: Any) -> Iterator[YamlList]:
    """Yield every list of additional settings below a key."""
    if isinstance(node, YamlMap):
        for name, value in node.items():
            if name == "additional-settings" and isinstance(value, YamlList):
                yield value
            else:
                yield from _settings(value)
    elif isinstance(node, list):
        for item in node:
            yield from _settings(item)


def _stated(text: str, model: str, where: Where, key: str) -> Stated:
    try:
        return Stated(float(text), model, where, key)
    except ValueError:
        raise ConfigError(f"{where} {key}: {_LENGTH}{text} is no number", allowed="tokens per step, as 2.49") from None


def _launch_file(named: Mapping[str, tuple[Any, int]], root: Path | None) -> YamlMap | None:
    """Return the launch file that settings name, None when it does not lie below the root."""
    said = named.get(_FILE[:-1])
    if said is None or root is None:
        return None
    name = str(said[0]).removeprefix(_FILE).partition(":")[0].removeprefix("recipes/")
    path = root / name
    return load_yaml(path) if path.is_file() else None


def _drafter(launch: YamlMap) -> Drafter | None:
    """Return how a launch file drafts: by vLLM's JSON, SGLang's flags or TensorRT-LLM's options; None: not at all."""
    for node in _maps(launch):
        if isinstance(text := node.get("speculative-config"), str):
            config = orjson.loads(text)
            return Drafter(str(config.get("method")), int(config["num_speculative_tokens"]), launch.file)
        if "speculative-num-steps" in node:
            name = str(node.get("speculative-algorithm") or node.get("speculative-algo") or "eagle").lower()
            return Drafter(METHOD_OF_CURVE.get(name, name), int(node["speculative-num-steps"]), launch.file)
        if "num_nextn_predict_layers" in node:
            return Drafter("mtp", int(node["num_nextn_predict_layers"]), launch.file)
    return None


def _lengths_in(launch: YamlMap) -> Iterator[tuple[float, int]]:
    """Yield the lengths that a launch file states itself, with their lines; TensorRT-LLM's lacks the bonus token."""
    for node in _maps(launch):
        for name, add in (("SGLANG_SIMULATE_ACC_LEN", 0.0), ("TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS", 1.0)):
            if name in node:
                yield float(node[name]) + add, node.lines[name]
        if isinstance(text := node.get("speculative-config"), str):
            config = orjson.loads(text)
            if "synthetic_acceptance_length" in config:
                yield float(config["synthetic_acceptance_length"]), node.lines["speculative-config"]


def _maps(node: Any) -> Iterator[YamlMap]:
    if isinstance(node, YamlMap):
        yield node
        for value in node.values():
            yield from _maps(value)
    elif isinstance(node, list):
        for item in node:
            yield from _maps(item)


def _held(stated: Stated, drafter: Drafter | None, curves: Sequence[Curve]) -> Iterator[Finding]:
    """Yield a finding when a length is none that a curve of the model has at the draft length."""
    of_model = [curve for curve in curves if curve.serves(stated.model)]
    if drafter is not None:
        of_model = [curve for curve in of_model if curve.method == drafter.method] or of_model
    if drafter is None or not of_model:
        known = [curve.name for curve in of_model]
        yield _unchecked(stated, known)
        return
    allowed = {curve.name: curve.thinking_on.get(drafter.steps) for curve in of_model}
    if any(value is not None and abs(value - stated.length) < _SAME for value in allowed.values()):
        return
    told = ", ".join(f"{value} ({name})" for name, value in allowed.items() if value is not None)
    first = next((value for value in allowed.values() if value), None)
    share = f" ({stated.length / first - 1:+.1%} tokens a step)" if first else ""
    yield Finding(
        rule="acceptance/not-golden",
        severity="error",
        message=f"{stated.key}: acceptance length {stated.length} with {drafter.steps} drafted tokens{share}",
        where=stated.where,
        allowed=told or f"no value is committed at {drafter.steps} drafted tokens",
        fix="take the committed value, or draft as many tokens as the value is of",
        evidence=f"{drafter.file} drafts {drafter.steps} tokens ({drafter.method})",
    )


def _unchecked(stated: Stated, known: Sequence[str]) -> Finding:
    why = "its launch file is not at hand, so its draft length is not known" if known else "no curve is of this model"
    return Finding(
        rule="acceptance/not-checked",
        severity="info",
        message=f"{stated.key}: acceptance length {stated.length} was not checked: {why}",
        where=stated.where,
        fix="name the folder of launch files with --recipes-root" if known else "commit the model's curve",
    )
