"""`prony recipe import`: launches that others wrote become recipes, verified by resolving them again."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.console import print_data, say

if TYPE_CHECKING:
    from prony.recipe.importers.launch import Import

_FAULTS = 2


def add_import_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `import`."""
    parser = verbs.add_parser(
        "import",
        help="make recipes of launches that others wrote",
        description="Make recipes of launches that others wrote. What the recipe gives is compared, flag by flag, with "
        "what was found; what does not agree is told, and the exit code is 2.",
        epilog="example: prony recipe import srt-slurm recipes/vllm/disagg.yaml --key my-key",
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    _add_models_yaml(kinds)
    _add_srt_slurm(kinds)
    _add_script(kinds)


def _add_models_yaml(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = kinds.add_parser(
        "models-yaml",
        help="flags of one model, as SGLang's disaggregated launches on AMD read them",
        description="Read one model of a models.yaml.",
        epilog="example: prony recipe import models-yaml models.yaml --model DeepSeek-R1 "
        "--key dsr1-fp8-mi355x-sglang-disagg --image lmsysorg/sglang:v0.5.16 "
        "--define MORI_MAX_DISPATCH_TOKENS_PREFILL=12288",
    )
    _add_common(parser)
    parser.add_argument("--model", required=True, metavar="NAME", help="which model of the file")
    parser.add_argument("--image", default="", metavar="REF", help="its release says which flags there are")
    parser.add_argument(
        "--define", action="append", default=[], metavar="NAME=N", help="a number that arithmetic names"
    )
    parser.set_defaults(run=models_yaml)


def _add_srt_slurm(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = kinds.add_parser(
        "srt-slurm",
        help="one recipe of srt-slurm (YAML, version 1)",
        description="Read one recipe of srt-slurm: a launch of Dynamo, vLLM, SGLang or TensorRT-LLM.",
        epilog="example: prony recipe import srt-slurm agg-gb200-tp8.yaml --key dsv4-fp4-gb200-dynamo-vllm",
    )
    _add_common(parser)
    parser.set_defaults(run=srt_slurm)


def _add_script(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = kinds.add_parser(
        "script",
        help="a launch script, traced at every point of a key",
        description="Run a launch script in namespaces of its own, without network, on a copy of nothing but what it "
        "needs, with recorders in the place of servers, clients and tools; at every point of the key. What varies is "
        "told by the point's fields where that is possible; the rest becomes literal rules and is reported.",
        epilog="example: prony recipe import script launch.sh --key my-key --config master.yaml",
    )
    _add_common(parser)
    parser.add_argument("--config", nargs="+", type=Path, required=True, metavar="FILE", help="master config with KEY")
    parser.add_argument("--runner-config", type=Path, metavar="FILE", help="default: runners.yaml beside the config")
    parser.add_argument("--limit-s", type=float, default=30.0, metavar="S", help="of one run; default: 30")
    parser.set_defaults(run=script)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="what to read")
    parser.add_argument("--key", required=True, metavar="KEY", help="config key that the recipe serves")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write KEY.yaml there; default: print it")


def models_yaml(arguments: argparse.Namespace) -> int:
    """Import one model. Raises ConfigError."""
    from prony.base.yamldoc import load_yaml
    from prony.recipe.importers.modelsyaml import import_model, read_model_entry

    entry = read_model_entry(load_yaml(arguments.file), arguments.model, _numbers(arguments.define))
    return _tell(arguments, import_model(entry, arguments.key, arguments.image))


def _numbers(texts: list[str]) -> dict[str, int]:
    from prony.base.errors import ConfigError

    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value.isdigit():
            raise ConfigError(f"--define {text}: no NAME=NUMBER", fix="--define MORI_MAX_DISPATCH_TOKENS_PREFILL=12288")
        found[name] = int(value)
    return found


def srt_slurm(arguments: argparse.Namespace) -> int:
    """Import one recipe. Raises ConfigError."""
    from prony.base.yamldoc import load_yaml
    from prony.recipe.importers.srtslurm import read_srt_slurm
    from prony.recipe.importers.verify import imported

    found = read_srt_slurm(load_yaml(arguments.file))
    framework = {"dynamo-trtllm": "dynamo-trt", "trtllm": "trt"}.get(found.engine, found.engine)
    return _tell(arguments, imported(found, arguments.key, framework))


def script(arguments: argparse.Namespace) -> int:
    """Import a script. Raises ConfigError, LaunchError."""
    from prony.cli.inputs import Inputs, read_matrix
    from prony.recipe.importers.script import import_script

    beside = arguments.config[0].parent
    inputs = Inputs(
        configs=tuple(arguments.config),
        runners=arguments.runner_config or beside / "runners.yaml",
        load=None,
        recipes=(),
        keys=(arguments.key,),
    )
    points = read_matrix(inputs, unlisted="note").points
    say_progress: Callable[[str], None] = lambda text: say(text, sys.stderr)  # noqa: E731
    return _tell(arguments, import_script(arguments.file, points, arguments.limit_s, say_progress))


def _tell(arguments: argparse.Namespace, found: "Import") -> int:
    """Write or print the recipe, then what was left out and what does not agree."""
    if arguments.out is None:
        print_data(found.text)
    else:
        _write(arguments.out / f"{arguments.key}.yaml", found.text)
    for note in found.notes:
        say(f"note: {note}", sys.stderr)
    for fault in found.faults:
        say(f"differs: {fault}", sys.stderr)
    verified = "verified: what it gives is what was found" if not found.faults else f"{len(found.faults)} differences"
    say(verified, sys.stderr)
    return _FAULTS if found.faults else 0


def _write(file: Path, text: str) -> None:
    from prony.base.errors import ConfigError
    from prony.base.files import make_folder, write_atomic

    if file.exists():
        raise ConfigError(f"{file}: exists already", fix="move it away, or choose another --out or --key")
    make_folder(file.parent)
    write_atomic(file, text.encode())
    say(str(file))
