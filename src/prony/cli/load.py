"""`prony load`: load any OpenAI-compatible server and say how it answered."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import whole

if TYPE_CHECKING:
    from prony.cli.loadfolder import Kept
    from prony.measure.summary import LoadSummary

TOOLS = ("prony", "vllm", "sglang", "aiperf", "guidellm", "inferencex")
INTERRUPTED = 130
_NOTHING, _NOT_VALID = 3, 4
_EPILOG = """\
Exit codes: 0 measured, whatever the verdicts; 2 the options; 3 nothing could be measured; 4 with --strict: a verdict
says invalid; 130 interrupted, what was measured until then is kept.

examples:
  prony load --url http://127.0.0.1:8000 --model m --isl 1024 --osl 256 --concurrency 32 --requests 320
  prony load --url http://127.0.0.1:8000 --model m --isl 1024 --osl 256 --concurrency 256 --requests 500 \\
    --rate 8 --arrival gamma --burstiness 0.5 --json summary.json
  prony load --from prony-load --report-as vllm
"""


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `load`."""
    parser = nouns.add_parser(
        "load",
        help="load a running server and measure how it answers",
        description="Load a running OpenAI-compatible server and measure TTFT, TPOT, ITL, throughput and more, with "
        "what the client says of itself. Arrival stamps are the kernel's.",
        epilog=_EPILOG,
    )
    _add_target(parser)
    _add_work(parser)
    _add_arrival(parser)
    _add_output(parser)
    parser.set_defaults(run=run)


def _add_target(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("server")
    group.add_argument("--url", metavar="URL", help="http(s)://HOST:PORT[/PREFIX], the prefix goes before /v1")
    group.add_argument("--model", metavar="NAME", help="default: the only one at /v1/models")
    group.add_argument("--endpoint", choices=("completions", "chat"), help="default: completions; with --turns, chat")
    group.add_argument(
        "--tokenizer",
        choices=("auto", "llamacpp", "vllm", "ids", "none"),
        default="auto",
        help="whose tokenizer endpoint to ask; ids: random token ids without asking; none: words, lengths approximate",
    )
    group.add_argument("--api-key-env", metavar="NAME", help="environment variable that holds the API key")
    group.add_argument("--ca-file", metavar="FILE", help="PEM: who may have signed the server's certificate")
    group.add_argument("--insecure", action="store_true", help="take any certificate")


def _add_work(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("requests")
    group.add_argument("--isl", type=whole(1), metavar="N", help="input tokens")
    group.add_argument("--osl", type=whole(1), metavar="N", help="output tokens, exactly (ignore_eos)")
    group.add_argument("--ratio", type=float, default=1.0, metavar="R", help="lengths from R*N to N; default: 1")
    group.add_argument("--concurrency", type=whole(1), metavar="C", help="requests in flight (open loop: at most)")
    group.add_argument("--requests", type=whole(1), metavar="N", help="measured requests; default: 10 * concurrency")
    group.add_argument("--warmup", type=whole(0), default=0, metavar="N", help="requests before, not measured")
    group.add_argument("--seed", type=whole(0), default=0, metavar="S", help="of lengths, prompts and arrivals")
    group.add_argument("--timeout-s", type=float, default=600.0, metavar="S", help="of one request; default: 600")
    group.add_argument("--no-stream", action="store_true", help="ask for whole answers: no TTFT, no TPOT")
    group.add_argument(
        "--input-lengths", metavar="DIST", help="uniform:A:B, normal:MEAN:STD or lognormal:MEDIAN:SIGMA, in tokens"
    )
    group.add_argument("--output-lengths", metavar="DIST", help="as --input-lengths")
    group.add_argument("--prefix", metavar="GROUPS:LENGTH[:ZIPF]", help="prompts share one of so many prefixes")
    group.add_argument("--turns", type=whole(1), metavar="N", help="conversations of N requests each")
    group.add_argument("--think-s", type=float, default=0.0, metavar="S", help="mean pause between turns; default: 0")
    group.add_argument("--dataset", metavar="KIND:FILE", help="sharegpt:FILE or request-log:FILE (JSON lines)")


def _add_arrival(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("arrivals (default: closed loop, a slot sends when its last request has ended)")
    group.add_argument("--rate", type=float, metavar="R", help="open loop: requests per second")
    group.add_argument("--arrival", choices=("closed", "constant", "poisson", "gamma", "timed"))
    group.add_argument("--burstiness", type=float, metavar="B", help="gamma's shape: 1 is Poisson, below is burstier")
    group.add_argument(
        "--stages", metavar="LIST", help="rates in turn: RATE[-TO]/SECONDS,…,RATE; 5-50/60,50 ramps up and stays"
    )
    group.add_argument("--repeat-stages", action="store_true", help="begin again after the last stage (on-off bursts)")
    group.add_argument("--prefill-concurrency", type=whole(1), metavar="N", help="at most N wait for a first token")
    group.add_argument("--ramp-s", type=float, default=0.0, metavar="S", help="slots begin over this time")
    group.add_argument("--speed", type=float, default=1.0, metavar="X", help="timed: replay X times as fast")
    group.add_argument("--spread", choices=("none", "even", "random"), default="none", help="timed: equal times")
    group.add_argument("--bucket-s", type=float, default=1.0, metavar="S", help="timed: width to spread over")


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--workers", type=whole(1, 256), default=1, metavar="N", help="client processes; default: 1")
    group.add_argument("--json", metavar="FILE", help="summary for programs; - is standard output")
    group.add_argument("--out", type=Path, metavar="DIR", help="keep event log, plan and summary there")
    group.add_argument("--from", dest="source", type=Path, metavar="DIR", help="load nothing: read an earlier --out")
    group.add_argument("--report-as", choices=TOOLS, default="prony", help="the same log by that tool's definitions")
    group.add_argument("--inferencex-json", type=Path, metavar="FILE", help="the raw result file of InferenceX")
    group.add_argument(
        "--gpus", type=whole(1), default=1, metavar="N", help="devices of the server, for per-GPU values"
    )
    group.add_argument("--strict", action="store_true", help="exit 4 when a verdict says invalid")
    group.add_argument("--quiet", action="store_true", help="no progress")


def run(arguments: argparse.Namespace) -> int:
    """Load, or read an earlier load, and report. Raises ConfigError or LaunchError."""
    import gc
    import os

    gc.disable()  # imports make no garbage; the measured phase collects before it begins
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that nothing here has work for
    from prony.base.errors import ConfigError

    if (arguments.url is None) == (arguments.source is None):
        raise ConfigError(
            "load: name the server with --url, or an earlier load with --from",
            allowed="one of the two",
            fix="prony load --url http://127.0.0.1:8000 --isl 128 --osl 64 --concurrency 4",
        )
    if arguments.source is not None:
        from prony.cli.loadfolder import read_folder

        return _report(arguments, read_folder(arguments.source), interrupted=False)
    return _load(arguments)


def _load(arguments: argparse.Namespace) -> int:
    from prony.base.files import check_can_write, make_folder
    from prony.cli.console import say
    from prony.cli.loadfolder import Kept, write_folder
    from prony.cli.loadplan import plan_of, target_of
    from prony.cli.loadshow import progress
    from prony.load.interrupts import Interrupts
    from prony.load.run import run_load

    plan = plan_of(arguments)
    for file in (arguments.json, arguments.inferencex_json):
        if file not in (None, "-"):
            check_can_write(Path(file))
    if arguments.out is not None:
        make_folder(arguments.out)
    with Interrupts() as interrupts:
        target = target_of(arguments)
        with progress(quiet=arguments.quiet) as show:
            recording = run_load(target, plan, show, workers=arguments.workers, interrupts=interrupts)
        if recording.log is None:
            say("prony: interrupted before the first measured request: there is nothing to tell", sys.stderr)
            return INTERRUPTED
        if arguments.out is not None:
            write_folder(arguments.out, plan, recording.log, recording.origin_ns, target.model)
        kept = Kept(plan, recording.origin_ns, recording.log, target.model)
        return _report(arguments, kept, interrupted=recording.stopped)


def _report(arguments: argparse.Namespace, kept: "Kept", *, interrupted: bool) -> int:
    from prony.cli.loadfolder import write_inferencex, write_summary
    from prony.cli.loadshow import print_report, print_summary
    from prony.measure.summary import summarize

    summary = summarize(kept.log, kept.plan, arguments.gpus)
    to_stdout = arguments.json == "-"
    if arguments.out is not None:
        write_summary(arguments.out / "summary.json", summary, kept.origin_ns)
    if arguments.json is not None:
        write_summary(None if to_stdout else Path(arguments.json), summary, kept.origin_ns)
    if arguments.inferencex_json is not None:
        write_inferencex(arguments.inferencex_json, kept)
    if not to_stdout:
        if arguments.report_as == "prony":
            print_summary(summary)
        else:
            print_report(kept.log, kept.plan, arguments.report_as)
    if interrupted:
        return INTERRUPTED
    if not summary.requests.completed:
        return _NOTHING
    return _NOT_VALID if arguments.strict and _invalid(summary) else 0


def _invalid(summary: "LoadSummary") -> bool:
    return any(verdict.severity == "invalid" for verdict in summary.verdicts)
