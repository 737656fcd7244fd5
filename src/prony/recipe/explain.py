"""A deployment as lines that people read: every argument and variable with the place where it was said."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from prony.recipe.deployment import Deployment, Role


class Said(NamedTuple):
    """One argument (`--name value`), variable (`NAME=value`) or file of a role, and where it comes from."""

    role: str
    kind: str
    name: str
    value: str
    place: str


def explain(deployment: Deployment) -> tuple[Said, ...]:
    """Return all that the roles are started with, in the order in which they are started."""
    places = {
        origin.leaf: f"{origin.file}:{origin.line}" if origin.line else origin.file for origin in deployment.origins
    }
    return tuple(said for role in deployment.roles for said in _role(role, places))


def facts(deployment: Deployment) -> Iterator[tuple[str, str]]:
    """Yield what holds for all roles: image, model, drafting, template, patches."""
    yield "engine", deployment.engine
    yield "image", deployment.image + (f"@{deployment.image_digest}" if deployment.image_digest else "")
    revision = f" at {deployment.model.revision}" if deployment.model.revision else ""
    yield "model", f"{deployment.model.id}{revision}"
    yield "devices", f"{deployment.topology.label}: {deployment.topology.gpus}"
    if (spec := deployment.spec) is not None:
        golden = f"golden {spec.acceptance_length} ({spec.curve}, {(spec.curve_digest or '')[:12]})"
        accepted = "real acceptance" if spec.acceptance_length is None else golden
        chain = f"{spec.method}, {spec.steps} steps, {spec.draft_tokens} draft tokens, topk {spec.topk}"
        yield "drafting", f"{chain}, {accepted}"
    if deployment.chat_template:
        yield "prompts", "through the chat template"
    for patch in deployment.patches:
        yield "patched", f"{patch.file} ({patch.sha256[:12]}): {patch.reason}"


def _role(role: Role, places: Mapping[str, str]) -> Iterator[Said]:
    head, args = _split(role.argv)
    yield Said(role.name, "command", "", " ".join(head), "")
    for name, value in args:
        plain = name.removeprefix("--")
        yield Said(role.name, "args", name, value, places.get(f"roles.{role.name}.args.{plain}", "engine"))
    for one in role.env:
        yield Said(role.name, "env", one.name, one.value, places.get(f"roles.{role.name}.env.{one.name}", "engine"))
    for file in role.files:
        yield Said(role.name, "file", file.name, file.text, "engine")


def _split(argv: tuple[str, ...]) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """Split words into the command and its `--name` groups; a word behind a flag is its value."""
    first = next((index for index, word in enumerate(argv) if word.startswith("--")), len(argv))
    groups: list[list[str]] = []
    for word in argv[first:]:
        if word.startswith("--"):
            groups.append([word])
        else:
            groups[-1].append(word)
    return argv[:first], [(group[0], " ".join(group[1:])) for group in groups]


class Difference(NamedTuple):
    """One thing that two deployments have apart; None: one of them has it not."""

    role: str
    name: str
    first: str | None
    second: str | None


def differences(first: Deployment, second: Deployment) -> tuple[Difference, ...]:
    """Return what differs, in the order of the first deployment."""
    one, other = _table(first), _table(second)
    names = list(dict.fromkeys([*one, *other]))
    return tuple(
        Difference(role, name, one.get((role, name)), other.get((role, name)))
        for role, name in names
        if one.get((role, name)) != other.get((role, name))
    )


def _table(deployment: Deployment) -> dict[tuple[str, str], str]:
    table = {("", name): value for name, value in facts(deployment)}
    for role in deployment.roles:
        table[role.name, "replicas"] = str(role.replicas)
    for said in explain(deployment):
        key = (said.role, said.name or said.kind)
        table[key] = f"{table[key]} {said.value}" if key in table else said.value
    return table
