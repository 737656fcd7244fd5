"""From the options of `prony load` to its target and its plan."""

import argparse
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prony.base.errors import ConfigError
from prony.base.model import first_fault
from prony.load.request import Target
from prony.spec.load import LoadPlan
from prony.spec.workload import FileWorkload

_PER_SLOT = 10
_DISTRIBUTIONS = {
    "uniform": ("least", "most"),
    "normal": ("mean", "std"),
    "lognormal": ("median", "sigma"),
}
_ALLOWED_LENGTHS = "uniform:LEAST:MOST, normal:MEAN:STD, lognormal:MEDIAN:SIGMA"


def target_of(arguments: argparse.Namespace) -> Target:
    """Return the server; asks it for what was not said. Raises LaunchError when it does not answer."""
    target = Target(
        url=arguments.url,
        model=arguments.model or "",
        tokenizer="none",
        api_key_env=arguments.api_key_env,
        ca_file=arguments.ca_file,
        insecure=arguments.insecure,
    )
    from prony.load.probe import find_tokenizer, only_model

    if not arguments.model:
        target = target.model_copy(update={"model": only_model(target)})
    tokenizer = find_tokenizer(target) if arguments.tokenizer == "auto" else arguments.tokenizer
    if tokenizer == "ids" and endpoint_of(arguments) == "chat":
        tokenizer = "none"
    return target.model_copy(update={"tokenizer": tokenizer})


def endpoint_of(arguments: argparse.Namespace) -> str:
    """Return the endpoint asked for; without one, chat for conversations, else completions."""
    return arguments.endpoint or ("completions" if arguments.turns is None else "chat")


def plan_of(arguments: argparse.Namespace) -> LoadPlan:
    """Return the plan. Raises ConfigError that says what does not go together."""
    if arguments.concurrency is None:
        raise ConfigError("load: --concurrency is missing", allowed="requests in flight, at least 1")
    fields: dict[str, Any] = {
        "endpoint": endpoint_of(arguments),
        "isl": arguments.isl,
        "osl": arguments.osl,
        "range_ratio": arguments.ratio,
        "concurrency": arguments.concurrency,
        "requests": arguments.requests or _PER_SLOT * arguments.concurrency,
        "warmups": arguments.warmup,
        "seed": arguments.seed,
        "request_timeout_s": arguments.timeout_s,
        "stream": not arguments.no_stream,
        "arrival": _arrival(arguments),
        "workload": _workload(arguments),
    }
    try:
        return LoadPlan.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(f"load: {first_fault(error)}", fix="see: prony load --help") from None


def _arrival(arguments: argparse.Namespace) -> dict[str, Any]:
    open_loop = arguments.rate is not None or arguments.stages is not None
    kind = arguments.arrival or ("poisson" if open_loop else "closed")
    _refuse_strangers(arguments, kind)
    if kind == "closed":
        return {"kind": "closed", "prefill_concurrency": arguments.prefill_concurrency, "ramp_s": arguments.ramp_s}
    if kind == "timed":
        return {"kind": "timed", "speed": arguments.speed, "spread": arguments.spread, "bucket_s": arguments.bucket_s}
    if not open_loop:
        raise ConfigError(f"load: --arrival {kind} needs --rate or --stages", fix="--rate 8: eight requests a second")
    if arguments.rate is not None and arguments.stages is not None:
        raise ConfigError("load: --rate and --stages both say how fast", fix="leave out one of them")
    stages = [{"rate": arguments.rate}] if arguments.stages is None else _stages(arguments.stages)
    return {
        "kind": "open",
        "process": kind,
        "burstiness": arguments.burstiness or 1.0,
        "stages": stages,
        "repeat": arguments.repeat_stages,
    }


def _refuse_strangers(arguments: argparse.Namespace, kind: str) -> None:
    """Refuse options that the kind of arrival would ignore."""
    loops = ("constant", "poisson", "gamma")
    owners = (
        ("rate", arguments.rate is not None, loops),
        ("stages", arguments.stages is not None, loops),
        ("repeat-stages", arguments.repeat_stages, loops),
        ("burstiness", arguments.burstiness is not None, ("gamma",)),
        ("prefill-concurrency", arguments.prefill_concurrency is not None, ("closed",)),
        ("ramp-s", arguments.ramp_s != 0.0, ("closed",)),
        ("speed", arguments.speed != 1.0, ("timed",)),
        ("spread", arguments.spread != "none", ("timed",)),
    )
    for option, given, kinds in owners:
        if given and kind not in kinds:
            raise ConfigError(f"load: --{option} is of --arrival {' or '.join(kinds)}, this is {kind}")


def _stages(text: str) -> list[dict[str, float]]:
    return [_stage(part, text) for part in text.split(",")]


def _stage(part: str, whole: str) -> dict[str, float]:
    """Read RATE[-TO][/SECONDS]."""
    rates, _, seconds = part.partition("/")
    rate, _, to = rates.partition("-")
    stage = {"rate": _number(rate, "--stages", whole)}
    if to:
        stage["to_rate"] = _number(to, "--stages", whole)
    if seconds:
        stage["for_s"] = _number(seconds, "--stages", whole)
    return stage


def _number(text: str, option: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"load: {option} {whole!r}: {text!r} is not a number", fix="see: prony load --help") from None


def _workload(arguments: argparse.Namespace) -> dict[str, Any]:
    shapes = {
        "--dataset": arguments.dataset is not None,
        "--turns": arguments.turns is not None,
        "--input-lengths, --output-lengths or --prefix": bool(
            arguments.input_lengths or arguments.output_lengths or arguments.prefix
        ),
    }
    chosen = [name for name, given in shapes.items() if given]
    if len(chosen) > 1:
        raise ConfigError(f"load: {' and '.join(chosen)} do not go together", fix="leave out all but one")
    if arguments.think_s and arguments.turns is None:
        raise ConfigError("load: --think-s is the pause between the turns of conversations", fix="add --turns N")
    if arguments.dataset is not None:
        kind, _, file = arguments.dataset.partition(":")
        if (kind != "sharegpt" and kind != "request-log") or not file:
            raise ConfigError(f"load: --dataset {arguments.dataset!r}", allowed="sharegpt:FILE, request-log:FILE")
        from prony.spec.loadfile import resolve_file

        return resolve_file(FileWorkload(kind=kind, file=file), Path.cwd()).model_dump()
    if arguments.turns is not None:
        return {"kind": "multi-turn", "turns": arguments.turns, "think_s": arguments.think_s}
    return {
        "kind": "random",
        "input": _lengths(arguments.input_lengths, "--input-lengths"),
        "output": _lengths(arguments.output_lengths, "--output-lengths"),
        "prefix": _prefix(arguments.prefix),
    }


def _lengths(text: str | None, option: str) -> dict[str, Any] | None:
    if text is None:
        return None
    kind, *values = text.split(":")
    names = _DISTRIBUTIONS.get(kind, ())
    if not names or len(values) != len(names):
        raise ConfigError(f"load: {option} {text!r} is not a distribution", allowed=_ALLOWED_LENGTHS)
    numbers = {name: _number(value, option, text) for name, value in zip(names, values, strict=True)}
    return {"kind": kind, **numbers}


def _prefix(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    values = text.split(":")
    if not 2 <= len(values) <= 3:
        raise ConfigError(f"load: --prefix {text!r}", allowed="GROUPS:LENGTH or GROUPS:LENGTH:ZIPF")
    names = ("groups", "length", "zipf")
    return {name: _number(value, "--prefix", text) for name, value in zip(names, values, strict=False)}
