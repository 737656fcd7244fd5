"""Pydantic validation of YAML values, with faults told as file:line, what is allowed, what to do."""

import difflib
import typing
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from prony.base.errors import ConfigError
from prony.base.model import ModelT
from prony.base.yamldoc import YamlList, YamlMap


def validate(kind: type[ModelT], value: YamlMap, what: str) -> ModelT:
    """Turn a YAML mapping into a model; `what` names it in errors. Raises ConfigError for the first fault."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        first = min(details, key=lambda detail: (detail["type"] != "extra_forbidden", len(detail["loc"])))
        raise _explain(first, kind, value, what) from None


def faults(kind: type[BaseModel], value: YamlMap, what: str) -> tuple[ConfigError, ...]:
    """Return every fault that `validate` could raise for a YAML mapping, in the order of their lines."""
    try:
        kind.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        details.sort(key=lambda detail: line_at(value, tuple(detail["loc"])))
        return tuple(_explain(detail, kind, value, what) for detail in details)
    return ()


def _explain(detail: ErrorDetails, kind: type[BaseModel], value: YamlMap, what: str) -> ConfigError:
    loc = tuple(detail["loc"])
    line = line_at(value, loc)
    place = f"{value.file}:{line} {what}"
    allowed = field_names(kind, loc[:-1])
    name = str(loc[-1]) if loc else ""
    if detail["type"] == "extra_forbidden":
        guess = difflib.get_close_matches(name, allowed, n=1)
        hint = f" (did you mean '{guess[0]}'?)" if guess else ""
        fix = f"write '{guess[0]}'" if guess else f"remove '{name}'"
        return ConfigError(f"{place}: '{name}' is not a field{hint}", allowed=", ".join(allowed), fix=fix)
    if detail["type"] == "missing":
        return ConfigError(f"{place}: '{name}' is missing", allowed=", ".join(allowed), fix=f"add '{name}: …'")
    if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return _explain_tag(detail, value, what)
    message = detail["msg"].removeprefix("Value error, ")
    written = _written(value, loc)
    field = ".".join(str(part) for part in written)
    given = "" if isinstance(detail["input"], dict | list) else f" (given: {_short(detail['input'])})"
    subject = f"'{field}' " if field else ""
    subject_of_fix = f"'{written[-1]}' in " if written and isinstance(written[-1], str) else ""
    fix = f"mend {subject_of_fix}line {line} of {value.file}"
    names = field_names(kind, loc)
    if detail["type"] == "model_attributes_type":
        message, allows = "must be a mapping", "kind: …" if "kind" in names else ", ".join(names)
    else:
        allows = _allowed(detail)
    return ConfigError(f"{place}: {subject}{message[:1].lower()}{message[1:]}{given}", allowed=allows, fix=fix)


def _explain_tag(detail: ErrorDetails, value: YamlMap, what: str) -> ConfigError:
    """Say that a `kind` is missing, or none of those there are."""
    loc, context = tuple(detail["loc"]), detail["ctx"]
    name = str(context["discriminator"]).strip("'")
    line = line_at(value, (*loc, name))
    place = f"{value.file}:{line} {what}: '{'.'.join(str(part) for part in (*_written(value, loc), name))}'"
    if "tag" not in context:
        return ConfigError(f"{place} is missing", fix=f"add '{name}: …'")
    tags = str(context["expected_tags"]).replace("'", "").split(", ")
    guess = difflib.get_close_matches(str(context["tag"]), tags, n=1)
    hint = f" (did you mean '{guess[0]}'?)" if guess else ""
    fix = f"write '{guess[0]}'" if guess else f"mend '{name}' in line {line} of {value.file}"
    return ConfigError(f"{place} is '{context['tag']}'{hint}", allowed=", ".join(tags), fix=fix)


def _written(value: YamlMap, loc: tuple[int | str, ...]) -> list[int | str]:
    """Return a path as it is written: without the tags of unions, which lead nowhere."""
    found: list[int | str] = []
    node: object = value
    for part in loc:
        if isinstance(node, YamlMap) and part in node:
            node = node[str(part)]
        elif isinstance(node, YamlList) and isinstance(part, int) and part < len(node):
            node = node[part]
        elif isinstance(node, YamlMap):
            continue
        found.append(part)
    return found


def _allowed(detail: ErrorDetails) -> str:
    """Say what a constraint allows, where its type tells; a rule's own message says it else."""
    limits = {"gt": "above", "ge": "from", "lt": "below", "le": "up to", "min_length": "at least"}
    context = detail.get("ctx", {})
    bounds = " and ".join(f"{word} {context[name]}" for name, word in limits.items() if name in context)
    kinds = {"int": "a whole number", "float": "a number", "bool": "true, false", "string": "text", "tuple": "a list"}
    kind = next((text for start, text in kinds.items() if detail["type"].startswith(f"{start}_")), "")
    return bounds or str(context.get("expected", "")) or kind


def _short(value: object) -> str:
    """Show a value as written in Python, cut where it would fill the screen."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a number of more than 40 digits"
    return text if len(text) <= 60 else text[:57] + "…"


def line_at(value: YamlMap, loc: tuple[int | str, ...]) -> int:
    """Return the line of the deepest part of a path that exists in the YAML."""
    line, node = value.line, value
    for part in loc:
        if isinstance(node, YamlMap) and part in node:
            line, node = node.lines[str(part)], node[str(part)]
        elif isinstance(node, YamlList) and isinstance(part, int) and part < len(node):
            line, node = node.lines[part], node[part]
    return line


def field_names(kind: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Return the field names (as written in YAML) of the model that a path leads to.

    A path names the tag of a union (a value of `kind`) where it goes through one.
    """
    models = [kind]
    for part in loc:
        tagged = [model for model in models if len(models) > 1 and part in tags_of(model)]
        if tagged:
            models = tagged
            continue
        inner = [_models_in(field.annotation) for model in models if (field := _field_of(model, part)) is not None]
        models = next(filter(None, inner), models)
    return [field.alias or name for name, field in models[0].model_fields.items()]


def tags_of(model: type[BaseModel]) -> tuple[object, ...]:
    """Return the values of a model's `kind` that choose it in a union."""
    field = model.model_fields.get("kind")
    return typing.get_args(field.annotation) if field is not None else ()


def _field_of(model: type[BaseModel], part: int | str) -> FieldInfo | None:
    return next((field for name, field in model.model_fields.items() if part in (name, field.alias)), None)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in typing.get_args(annotation) for model in _models_in(argument)]
