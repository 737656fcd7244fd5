"""Frozen models, canonical JSON and content digests."""

import hashlib
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from prony.base.errors import ConfigError
from prony.base.files import write_atomic


class Frozen(BaseModel):
    """Base of every type that crosses a border: immutable, unknown fields refused, numbers finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False, defer_build=True)


ModelT = TypeVar("ModelT", bound=Frozen)


def canonical_json(value: Frozen | dict[str, Any] | list[Any]) -> bytes:
    """Return the one JSON text of a value: sorted keys, no spaces, UTF-8."""
    plain = value.model_dump(mode="json") if isinstance(value, Frozen) else value
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)


def digest(value: Frozen | dict[str, Any] | list[Any]) -> str:
    """Return the sha256 (64 hex digits) of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def write_model(path: Path, value: Frozen) -> None:
    """Write a model as indented JSON by atomic rename. Raises LaunchError when the disk refuses."""
    text = orjson.dumps(value.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_atomic(path, text)


def read_model(path: Path, kind: type[ModelT]) -> ModelT:
    """Read a model from a JSON file. Raises ConfigError that names the file, the field and the fault."""
    try:
        value = kind.model_validate_json(path.read_bytes())
        canonical_json(value)
        return value
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file", fix=f"check the path; a {kind.__name__} was expected") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", fix="check its permissions") from None
    except ValidationError as error:
        raise ConfigError(
            f"{path}: not a valid {kind.__name__}: {first_fault(error)}",
            fix="write it again with the same version of prony",
        ) from None
    except TypeError:
        raise ConfigError(
            f"{path}: not a valid {kind.__name__}: a whole number of more than 64 bits",
            fix="write it again with the same version of prony",
        ) from None


def first_fault(error: ValidationError) -> str:
    """Say in one line where and why validation failed first."""
    fault = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in fault["loc"]) or "the file"
    return f"{where}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"
