"""What placeholders in a deployment stand for once it is started: ports, URLs, folders, files, interpreters."""

import os
import re
import shutil
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from prony.base.errors import LaunchError
from prony.base.files import make_folder, write_atomic
from prony.recipe.deployment import Deployment, Role

HOST = "127.0.0.1"
_PLACEHOLDER = re.compile(r"\{(port|url|host|file|env):([^{}]+)\}|\{(model_dir|python|prony_python|shared_dir)\}")


@dataclass(frozen=True)
class Seat:
    """One process to be: its role, its number among the role's replicas, and its ports by name."""

    role: Role
    number: int
    ports: Mapping[str, int]

    @property
    def name(self) -> str:
        return f"{self.role.name}-{self.number}"

    @property
    def url(self) -> str:
        """Where it answers HTTP."""
        return f"http://{HOST}:{self.ports[self.role.ready.port]}"


def seats(deployment: Deployment) -> tuple[Seat, ...]:
    """Give every process its ports; all are held open together so that they differ, then let go."""
    found = []
    with ExitStack() as held:
        for role in deployment.roles:
            for number in range(role.replicas):
                ports = {}
                for name in role.ports:
                    listener = held.enter_context(socket.socket())
                    listener.bind((HOST, 0))
                    ports[name] = int(listener.getsockname()[1])
                found.append(Seat(role, number, ports))
    return tuple(found)


def common(deployment: Deployment, model_dir: Path | None, scratch: Path) -> dict[str, str]:
    """Return the values that all processes share; the shared folder is made when something asks for it."""
    values = {"python": deployment.python or sys.executable, "prony_python": sys.executable}
    if model_dir is not None:
        values["model_dir"] = str(model_dir)
    texts = [word for role in deployment.roles for word in (*role.argv, *(one.value for one in role.env))]
    if any("{shared_dir}" in text for text in texts):
        drop_shared(scratch)
        make_folder(scratch / "shared")
        values["shared_dir"] = str(scratch / "shared")
    return values


def drop_shared(scratch: Path) -> None:
    """Delete what processes shared: KV of one start is of no use to the next, and it is large."""
    shutil.rmtree(scratch / "shared", ignore_errors=True)


def values_of(seat: Seat, everyone: tuple[Seat, ...], shared: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return what a process's placeholders stand for, and write its files. Raises LaunchError when the disk refuses."""
    values = dict(shared)
    for other in everyone:
        values |= {f"port:{other.name}:{name}": str(port) for name, port in other.ports.items()}
        values[f"url:{other.name}"] = other.url
        values[f"host:{other.name}"] = HOST
    values |= {f"port:{name}": str(port) for name, port in seat.ports.items()}
    for file in seat.role.files:
        path = scratch / "files" / seat.name / file.name
        make_folder(path.parent)
        write_atomic(path, file.text.encode())
        values[f"file:{file.name}"] = str(path)
    return values


def bind(text: str, values: Mapping[str, str], what: str) -> str:
    """Fill in `{port:NAME}`, `{url:ROLE-N}`, `{model_dir}`, `{env:NAME}` and the like; other braces stay.

    Raises LaunchError.
    """

    def fill(match: re.Match[str]) -> str:
        name = match[0][1:-1]
        value = os.environ.get(match[2]) if match[1] == "env" else values.get(name)
        if value is None:
            fix = f"export {match[2]}=… before the run" if match[1] == "env" else "mend the recipe"
            raise LaunchError(f"{what}: nothing to put for {match[0]}", allowed=", ".join(sorted(values)), fix=fix)
        return value

    return _PLACEHOLDER.sub(fill, text)


def secret_names(deployment: Deployment) -> tuple[str, ...]:
    """Return the environment variables that a deployment refers to with `{env:NAME}`."""
    texts = [part for role in deployment.roles for part in (*role.argv, *(one.value for one in role.env))]
    return tuple(match[2] for text in texts for match in _PLACEHOLDER.finditer(text) if match[1] == "env")
