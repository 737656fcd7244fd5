"""The real llama.cpp server, as the xllamacpp package embeds it: `python -m prony.recipe.engines.llamacpp_server`."""

import argparse
import contextlib
import importlib.metadata
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from prony.base.errors import LaunchError
from prony.recipe.engines.flags import add_to_parser
from prony.recipe.engines.llamacpp_flags import LLAMACPP_FLAGS
from prony.recipe.engines.version import announce

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_GGUF_MAGIC = b"GGUF"


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT, then exit 0 at once; exit 3 with one message when the server can't start."""
    parser = argparse.ArgumentParser(
        prog="python -m prony.recipe.engines.llamacpp_server",
        description="Serve a GGUF model with llama.cpp (example: --model smollm2.gguf --port 8080 --parallel 4).",
    )
    add_to_parser(parser, LLAMACPP_FLAGS)
    args = parser.parse_args(argv)
    # Before any thread exists, so that all of them inherit the mask and only the watcher gets the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    threading.Thread(target=_exit_on_signal, daemon=True).start()
    try:
        server = _start(args)
    except LaunchError as error:
        _say(f"llama.cpp server: {error}")
        return error.exit_code
    _say(f"llama.cpp server: {args.alias or args.model} at {server.listening_address}")
    threading.Event().wait()
    return 0


def _exit_on_signal() -> None:
    """Leave at once, in the middle of loading too: nothing here needs tidying that the kernel doesn't do."""
    signal.sigwait(_STOP_SIGNALS)
    sys.stdout.flush()
    os._exit(0)


def _start(args: argparse.Namespace) -> Any:
    """Return the server, which serves for as long as it is referenced. Raises LaunchError."""
    xllamacpp = _engine()
    _say(announce(_version(xllamacpp)))
    _check_model(args.model)
    if args.model_draft:
        _check_model(args.model_draft)
    _check_port(args.host, args.port)
    params = _params(xllamacpp, args)
    last_errors: list[str] = []
    try:
        with _stderr_seen(last_errors):
            return xllamacpp.Server(params)
    except RuntimeError:
        raise _load_failure(args, last_errors) from None


def _engine() -> ModuleType:
    try:
        import xllamacpp  # heavy, and an extra
    except ImportError as error:
        raise LaunchError(f"the package xllamacpp is not there ({error})", fix="pip install xllamacpp") from None
    return xllamacpp  # type: ignore[no-any-return]


def _version(xllamacpp: ModuleType) -> str:
    build = xllamacpp.BUILD_INFO
    number, commit = build["build_number"], build["commit"]
    return (
        f"xllamacpp {importlib.metadata.version('xllamacpp')} "
        f"(llama.cpp b{number}-{commit}, {build['compiler']}, {build['build_target']})"
    )


def _check_model(path: str) -> None:
    """Raise LaunchError unless a file is there and begins as GGUF does."""
    try:
        with Path(path).open("rb") as file:
            magic = file.read(len(_GGUF_MAGIC))
    except OSError as error:
        raise LaunchError(f"model {path}: {error.strerror}", fix="check model.location and model.files") from None
    if magic != _GGUF_MAGIC:
        raise LaunchError(f"model {path}: is not a GGUF file", fix="download it again; compare its sha256")


def _check_port(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise LaunchError(
                f"port {port} on {host}: {reason}", fix="stop what listens there, or use another"
            ) from None


def _params(xllamacpp: ModuleType, args: argparse.Namespace) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.hostnames = [args.host]
    params.port = args.port
    params.endpoint_metrics = args.metrics
    if args.alias:
        params.model_alias = {args.alias}
    params.n_ctx = args.ctx_size
    params.n_parallel = args.parallel
    params.n_threads_http = args.threads_http
    params.n_batch = args.batch_size
    params.n_ubatch = args.ubatch_size
    params.n_gpu_layers = args.n_gpu_layers
    params.cache_type_k = _cache_type(xllamacpp, args.cache_type_k)
    params.cache_type_v = _cache_type(xllamacpp, args.cache_type_v)
    params.cache_prompt = not args.no_cache_prompt
    params.warmup = not args.no_warmup
    params.verbosity = args.verbosity
    _set_threads(params, args)
    if args.spec_type == "draft-simple":
        _set_drafting(xllamacpp, params.speculative, args)
        _set_threads(params.speculative.draft, args)
    return params


def _cache_type(xllamacpp: ModuleType, name: str) -> Any:
    return getattr(xllamacpp.ggml_type, f"GGML_TYPE_{name.upper()}")


def _set_threads(owner: Any, args: argparse.Namespace) -> None:
    owner.cpuparams.n_threads = args.threads
    owner.cpuparams_batch.n_threads = args.threads_batch
    owner.cpuparams.poll = args.poll
    owner.cpuparams_batch.poll = args.poll


def _set_drafting(xllamacpp: ModuleType, speculative: Any, args: argparse.Namespace) -> None:
    if not args.model_draft:
        raise LaunchError("--spec-type draft-simple needs a model that drafts", fix="give --model-draft FILE")
    speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
    speculative.draft.mparams.path = args.model_draft
    speculative.draft.n_gpu_layers = args.n_gpu_layers
    speculative.draft.n_min = args.draft_min
    speculative.draft.p_min = args.draft_p_min
    if args.draft_max is not None:
        speculative.draft.n_max = args.draft_max
    if args.spec_synth_len is not None:
        speculative.synth_len = args.spec_synth_len


@contextlib.contextmanager
def _stderr_seen(errors: list[str]) -> Iterator[None]:
    """Pass stderr on while the model loads and keep its error lines: the engine's exception has no reason in it."""
    reader, writer = os.pipe()
    real = os.dup(2)
    os.dup2(writer, 2)
    os.close(writer)
    copier = threading.Thread(target=_copy_lines, args=(reader, real, errors))
    copier.start()
    try:
        yield
    finally:
        os.dup2(real, 2)  # closes the pipe's last writer, which ends the copier
        copier.join()
        os.close(real)


def _copy_lines(reader: int, real: int, errors: list[str]) -> None:
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            os.write(real, line)
            _, is_error, message = line.decode(errors="replace").partition(" E ")
            if is_error:
                errors.append(message.strip())


def _load_failure(args: argparse.Namespace, errors: Sequence[str]) -> LaunchError:
    told = [line for line in errors if "error loading model" in line] or list(errors)
    reason = told[0] if told else "llama.cpp gave no reason"
    return LaunchError(
        f"{args.model} cannot be served: {reason}",
        fix="if the file is corrupted or incomplete, download it again and compare its sha256",
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
