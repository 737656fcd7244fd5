"""A simulated OpenAI-compatible server with known timing and faults on demand: `python -m prony.sim.server`."""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence

from prony.base.errors import ConfigError, LaunchError, PronyError
from prony.recipe.engines.flags import add_to_parser
from prony.recipe.engines.sim_flags import SIM_FLAGS
from prony.recipe.engines.version import announce
from prony.sim.faults import Faults, read_fault
from prony.sim.http import Connection
from prony.sim.pacer import Pacer
from prony.sim.service import VERSION, Options, Service
from prony.sim.siblings import Siblings, raise_file_limit
from prony.sim.timing import Timing

_BACKLOG = 4096


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT, then exit 0; 2 for a wrong option, 3 when the port is taken, 1 for a fault."""
    parser = argparse.ArgumentParser(
        prog="python -m prony.sim.server",
        description="Serve simulated completions (example: --port 8000 --model sim --ttft-ms 20 --itl-ms 2).",
    )
    add_to_parser(parser, SIM_FLAGS)
    args = parser.parse_args(argv)
    try:
        faults = Faults(read_fault(text) for text in args.fault or ())
        options = _options(args)
        _say(announce(VERSION))
        if faults.has("die-at-start"):
            _say("simulated server: fault die-at-start")
            return 1
        if faults.has("oom-at-load"):
            _say("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. (fault oom-at-load)")
            return 1
        return _run(args, options, faults)
    except PronyError as error:
        _say(f"simulated server: {error}")
        return error.exit_code


def _options(args: argparse.Namespace) -> Options:
    for flag in SIM_FLAGS:
        given = getattr(args, flag.name.replace("-", "_"))
        fault = flag.fault(str(given)) if flag.kind in ("int", "float") else None
        if fault:
            raise ConfigError(f"--{flag.name} can't be {given}", allowed=fault)
    if args.role_chunk_ms > args.ttft_ms:
        raise ConfigError("--role-chunk-ms can't be more than --ttft-ms", fix="the role chunk comes before any token")
    timing = Timing(
        ttft_s=args.ttft_ms / 1e3,
        itl_s=args.itl_ms / 1e3,
        prefill_s_per_token=args.prefill_us_per_token / 1e6,
        tokens_per_event=args.tokens_per_event,
    )
    return Options(args.model, timing, args.slots, args.role_chunk_ms / 1e3, args.max_model_len, args.seed)


def _run(args: argparse.Namespace, options: Options, faults: Faults) -> int:
    import uvloop

    if faults.has("ignore-term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise_file_limit()
    if args.workers > 1 and not args.port:
        raise ConfigError("several workers share one port, which must be named", fix="--port N with N above 0")
    siblings = Siblings(args.workers - 1)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(args, options, faults, siblings.mine))
    finally:
        siblings.stop()


async def _serve(args: argparse.Namespace, options: Options, faults: Faults, speaks: bool) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT,) if faults.has("ignore-term") else (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if faults.has("hang-at-start"):
        _say("simulated server: fault hang-at-start")
        await stop.wait()
        return 0
    if await _stopped_within(stop, args.start_delay_s):
        return 0
    pacer = Pacer(loop)
    service = Service(options, faults, pacer)
    try:
        server = await loop.create_server(
            lambda: Connection(service.handle), args.host, args.port, backlog=_BACKLOG, reuse_port=args.workers > 1
        )
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LaunchError(
            f"port {args.port} on {args.host}: {reason}", fix="stop what listens there, or use another port"
        ) from None
    if speaks:
        _say(f"simulated server: {options.model} at http://{args.host}:{server.sockets[0].getsockname()[1]}")
    await stop.wait()
    server.close()
    pacer.close()
    return 0


async def _stopped_within(stop: asyncio.Event, seconds: float) -> bool:
    if seconds <= 0:
        return stop.is_set()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    return stop.is_set()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
