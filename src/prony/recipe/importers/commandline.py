"""The command line of a server as flags by name, read as the engines read theirs."""

import re
from collections.abc import Mapping, Sequence

from prony.recipe.engines.table import ENGINES
from prony.recipe.importers.launch import Values

MODULES = {
    "sglang": "sglang.launch_server",
    "vllm": "vllm.entrypoints.openai.api_server",
    "trtllm": "tensorrt_llm.commands.serve",
    "atom": "atom.entrypoints.openai_server",
}
_PROGRAMS = {"sglang": "sglang", "vllm": "vllm", "trtllm": "trtllm-serve"}
_VERB = "serve"
# vLLM's short options (its arguments' second names, release 0.27); the others have none.
_SHORT = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-dp": "data-parallel-size",
    "-dcp": "decode-context-parallel-size",
    "-pcp": "prefill-context-parallel-size",
    "-ep": "enable-expert-parallel",
    "-sc": "speculative-config",
    "-cc": "compilation-config",
    "-q": "quantization",
}
_NUMBER = re.compile(r"-\d")
_JSON = ("{", "[")


def begins(argv: Sequence[str], engine: str) -> int | None:
    """Return where the arguments of an engine's server begin in a call, None when it starts none.

    What comes before may be a wrapper: mpirun, docker run IMAGE, env.
    """
    for index, word in enumerate(argv):
        following = argv[index + 1] if index + 1 < len(argv) else ""
        if word == MODULES[engine] and index and argv[index - 1] == "-m":
            return index + 1
        if word.rpartition("/")[2] == _PROGRAMS.get(engine) and following == _VERB:
            return index + 2
        if engine == "trtllm" and word.rpartition("/")[2] == _PROGRAMS[engine] and following:
            return index + 1
    return None


def environment_of(argv: Sequence[str], exported: Mapping[str, str], engine: str) -> dict[str, str]:
    """Return a server's environment: what was exported, or in a container what it is given; `env NAME=VALUE` adds."""
    before = list(argv[: begins(argv, engine) or 0])
    contained = before[:1] in (["docker"], ["podman"])
    env = {} if contained else dict(exported)
    for index, word in enumerate(before):
        flag, equals, rest = word.partition("=")
        named = rest if flag == "--env" and equals else word if index and _gives(before[index - 1], contained) else ""
        name, valued, value = named.partition("=")
        if valued:
            env[name] = value
        elif name in exported:
            env[name] = exported[name]
    return env


def _gives(word: str, contained: bool) -> bool:
    """Say whether a variable follows a word: `docker run -e`, `mpirun -x`, `env`."""
    return word in (("-e", "--env") if contained else ("-x", "env"))


def read_command(argv: Sequence[str], engine: str, image: str) -> tuple[str | None, dict[str, Values]]:
    """Return the model that is named without a flag, and the flags. The last of a flag that takes one value counts.

    Raises ValueError for a call that starts no server, and for a word that stands for itself where none can.
    """
    first = begins(argv, engine)
    if first is None:
        raise ValueError(f"{argv[0]} starts no server of {engine}")
    table = {flag.name: flag for flag in ENGINES[engine].flags(image)}
    flags: dict[str, Values] = {}
    model, name = None, ""
    for word in argv[first:]:
        if word.startswith("-") and not _NUMBER.match(word):
            head, equals, value = word.partition("=")
            name = _name(head, set(table))
            flag = table.get(name)
            repeats = flag is None or flag.repeats
            flags[name] = (*(flags.get(name, ()) if repeats else ()), *((value,) if equals else ()))
        elif name:
            flags[name] = (*flags[name], word)
        elif model is None and not word.startswith(_JSON):
            model = word
        else:
            raise ValueError(f"{word!r} stands where a flag should")
    return model, flags


def _name(head: str, known: set[str]) -> str:
    """Return a flag's name as the table has it: dashes and underscores are the same to most engines."""
    if not head.startswith("--"):
        if head not in _SHORT:
            raise ValueError(f"{head} is not a flag that is known here by one letter")
        return _SHORT[head]
    plain = head.removeprefix("--")
    others = (plain, plain.replace("_", "-"), plain.replace("-", "_"))
    return next((name for name in others if name in known), plain)
