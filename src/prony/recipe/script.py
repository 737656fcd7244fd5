"""A deployment as a script that serves it without Prony: to look at, to hand to somebody, to run by hand."""

import re
import shlex
from collections.abc import Iterator
from typing import Literal

from prony.recipe.deployment import Deployment, Role

Form = Literal["docker", "sbatch"]
FIRST_PORT = 8000
_PLACEHOLDER = re.compile(r"\{(port|url|host|file|env):([^{}]+)\}|\{(model_dir|python|prony_python|shared_dir)\}")
_PLAIN = {
    "model_dir": "$MODEL_DIR",
    "python": "python3",
    "prony_python": "python3",
    "shared_dir": "$SHARED_DIR",
}


def script(deployment: Deployment, form: Form, vendor: str) -> str:
    """Return the text of a bash script. Ports are fixed ones; MODEL_DIR and SHARED_DIR are set by who runs it.

    vendor: of the accelerators, which says how a container is given them.
    """
    ports = _ports(deployment)
    lines = [_head(deployment, form), *_needs(deployment)]
    first = 0
    for role in deployment.roles:
        for number in range(role.replicas):
            devices = _devices(vendor, first, role.gpus)
            lines += _process(deployment, role, number, ports, devices if form == "docker" else None)
            first += role.gpus
    lines += ["wait", ""]
    return "\n".join(lines)


def _head(deployment: Deployment, form: Form) -> str:
    first = "#!/usr/bin/env bash"
    if form == "sbatch":
        nodes = sum(pool.nodes or 1 for pool in deployment.topology.pools)
        gpus = max(1, -(-deployment.topology.gpus // nodes))
        first += f"\n#SBATCH --nodes={nodes}\n#SBATCH --gpus-per-node={gpus}\n#SBATCH --exclusive"
    told = f"# {deployment.recipe}: {deployment.topology.label}, {deployment.image}"
    return f"{first}\n{told}\nset -euo pipefail"


def _needs(deployment: Deployment) -> Iterator[str]:
    text = " ".join(word for role in deployment.roles for word in role.argv)
    if "{model_dir}" in text:
        yield f': "${{MODEL_DIR:?the folder that holds {deployment.model.id}}}"'
    if "{shared_dir}" in text or any("{shared_dir}" in one.value for role in deployment.roles for one in role.env):
        yield 'SHARED_DIR="${SHARED_DIR:-$(mktemp -d)}"'
    if any(role.files for role in deployment.roles):
        yield 'FILES_DIR="$(mktemp -d)"'


def _ports(deployment: Deployment) -> dict[str, int]:
    """Return a port for every name of every process, counted up."""
    names = [
        f"{role.name}-{number}:{port}"
        for role in deployment.roles
        for number in range(role.replicas)
        for port in role.ports
    ]
    return {name: FIRST_PORT + index for index, name in enumerate(names)}


def _devices(vendor: str, first: int, count: int) -> list[str]:
    """Return docker's options for devices counted from the first, as if all roles stood on one node."""
    if not count or vendor == "CPU":
        return []
    listed = ",".join(str(first + number) for number in range(count))
    if vendor == "AMD":
        return ["--device /dev/kfd", "--device /dev/dri", f"-e HIP_VISIBLE_DEVICES={listed}"]
    return [f"--gpus '\"device={listed}\"'"]


def _process(
    deployment: Deployment, role: Role, number: int, ports: dict[str, int], docker: list[str] | None
) -> Iterator[str]:
    name = f"{role.name}-{number}"
    ready = f"{ports[f'{name}:{role.ready.port}']}{role.ready.path}"
    yield f"\n# {name}: {role.gpus} devices, ready when port {ready} answers"
    for file in role.files:
        yield f"cat > \"$FILES_DIR/{name}-{file.name}\" <<'END'\n{file.text.rstrip()}\nEND"
    words = [_bound(word, name, ports) for word in role.argv]
    env = [f"{one.name}={_bound(one.value, name, ports)}" for one in role.env]
    if docker is not None:
        mounts = ['-v "${MODEL_DIR}:${MODEL_DIR}:ro"'] if "{model_dir}" in " ".join(role.argv) else []
        mounts += ['-v "$FILES_DIR:$FILES_DIR:ro"'] if role.files else []
        options = ["--rm", "--network host", "--ipc host", *docker, *mounts, *(f"-e {_quoted(one)}" for one in env)]
        program = " ".join(map(_quoted, words[:3]))
        called = ["docker run", *options, f"{shlex.quote(deployment.image)} {program}", *map(_quoted, words[3:])]
    else:
        step = "srun --ntasks=1 --nodes=1 --overlap"
        called = [step, f"--container-image={shlex.quote(deployment.image)}", "env", *map(_quoted, [*env, *words])]
    yield " \\\n  ".join(_grouped(called)) + " &"


def _grouped(words: list[str]) -> Iterator[str]:
    """Yield words in lines: a flag stands with its value."""
    line: list[str] = []
    for index, word in enumerate(words):
        if line and (word.startswith("-") or (index and words[index - 1].startswith("-e "))):
            yield " ".join(line)
            line = []
        line.append(word)
    yield " ".join(line)


def _bound(text: str, name: str, ports: dict[str, int]) -> str:
    def fill(match: re.Match[str]) -> str:
        kind, what = match[1], match[2]
        if kind is None:
            return _PLAIN[match[3]]
        if kind == "port":
            return str(ports[what if ":" in what else f"{name}:{what}"])
        if kind == "url":
            return f"http://127.0.0.1:{ports[f'{what}:http']}"
        if kind == "file":
            return f"$FILES_DIR/{name}-{what}"
        return f"${{{what}:?}}" if kind == "env" else "127.0.0.1"

    return _PLACEHOLDER.sub(fill, text)


def _quoted(word: str) -> str:
    """Quote a word for bash, leaving the script's own variables to it."""
    if re.search(r"\$(MODEL_DIR|SHARED_DIR|FILES_DIR|\{[A-Za-z_][A-Za-z0-9_]*:\?\})", word):
        return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`") + '"'
    return shlex.quote(word)
