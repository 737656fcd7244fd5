"""`prony changelog`: judge, select, explain, merge and write entries of the change log."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import whole
from prony.cli.changeloginputs import add_pr_argument, add_version_arguments

if TYPE_CHECKING:
    from prony.base.finding import Finding
    from prony.cli.changeloginputs import Inputs
    from prony.spec.changelog.batch import Modifiers
    from prony.spec.changelog.compare import Target
    from prony.spec.changelog.select import Masters

REFUSED = 2
_KNOWN = "refuse keys that these do not have; default: configs/{nvidia,amd}-master.yaml beside --file"
_FOR_PR = "number of the pull request whose entries these are"


def add_parser(nouns: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `prony changelog`."""
    parser = nouns.add_parser(
        "changelog",
        help="judge and write entries of perf-changelog.yaml",
        description="The change log is append-only: entries that a change adds say which configs run.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    _add_check(verbs)
    _add_select(verbs)
    _add_explain(verbs)
    _add_canonicalize(verbs)
    _add_resolve(verbs)
    _add_add(verbs)


def _add_check(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "check",
        help="accept or refuse a change",
        description="Judge a change of the change log: exit 0 when it is accepted, 2 with findings when it is not.",
        epilog="examples: prony changelog check --base-ref origin/main --pr 1234\n"
        "          prony changelog check --base old.yaml --head new.yaml --pr 1234 --fix",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version_arguments(parser)
    add_pr_argument(parser, f"{_FOR_PR}; without it links must be final, as on main")
    parser.add_argument(
        "--json", action="store_true", help="print {accepted, findings} as JSON; with --fix also what was mended"
    )
    parser.add_argument("--fix", action="store_true", help="mend line ends, blank lines, place and links first")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where --fix writes; default: the --head file")
    parser.set_defaults(run=check)


def _add_select(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "select",
        help="print the rows that a change runs",
        description="Print the rows that a change runs in CI's buckets, as one line of JSON. "
        "What the gate would refuse but selection can read is told on standard error.",
        epilog="example: prony changelog select --base-ref origin/main --trim-conc",
    )
    add_version_arguments(parser)
    add_pr_argument(parser, _FOR_PR)
    _add_modifiers(parser)
    parser.set_defaults(run=select)


def _add_explain(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "explain",
        help="say what would run for a key, and why",
        description="Say what a change would run for one config key and why, or why nothing.",
        epilog="example: prony changelog explain dsr1-fp8-h200-sglang --base-ref origin/main",
    )
    parser.add_argument("key", metavar="KEY")
    add_version_arguments(parser)
    add_pr_argument(parser, _FOR_PR)
    _add_modifiers(parser)
    parser.add_argument("--json", action="store_true", help="print {key, benchmarks, evals, reasons} as JSON")
    parser.set_defaults(run=explain)


def _add_modifiers(parser: argparse.ArgumentParser) -> None:
    labels = parser.add_argument_group("labels of the pull request")
    labels.add_argument("--trim-conc", action="store_true", help="the lowest concurrency of each deployment alone")
    labels.add_argument("--all-evals", action="store_true", help="evals at every point that can have one")
    labels.add_argument("--evals-only", action="store_true", help="no benchmarks")


def _add_canonicalize(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "canonicalize",
        help="fill in the link of new entries",
        description="Print the head file with the pull request's address in place of placeholders.",
        epilog="example: prony changelog canonicalize --base main.yaml --head perf-changelog.yaml --pr 1234",
    )
    parser.add_argument("--base", type=Path, required=True, metavar="FILE")
    parser.add_argument("--head", type=Path, required=True, metavar="FILE")
    parser.add_argument("--pr", type=whole(1), required=True, metavar="N", help=_FOR_PR)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead of printing")
    parser.set_defaults(run=canonicalize)


def _add_resolve(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "resolve",
        help="merge main into a branch that changed the file",
        description="Print main's file with what the branch added or corrected. Usable as a git merge driver.",
        epilog="example: prony changelog resolve --base %%O --ours %%A --theirs %%B --out %%A --path %%P",
    )
    parser.add_argument("--base", type=Path, required=True, metavar="FILE", help="the last common version")
    parser.add_argument("--ours", type=Path, required=True, metavar="FILE", help="the branch's version")
    parser.add_argument("--theirs", type=Path, required=True, metavar="FILE", help="main's version")
    parser.add_argument("--path", metavar="PATH", help="what messages call the file (%%P of a merge driver)")
    add_pr_argument(parser, "number of the branch's pull request; without it links stay as written")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead of printing")
    parser.set_defaults(run=resolve)


def _add_add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "add",
        help="append an entry",
        description="Append an entry as the gate accepts it. The link is that of --pr, else a placeholder.",
        epilog="example: prony changelog add --keys dsr1-fp8-h200-sglang --description 'Raise concurrency' --pr 1234",
    )
    parser.add_argument("--keys", nargs="+", required=True, metavar="K", help="config keys; * is a wildcard")
    parser.add_argument("--description", nargs="+", required=True, metavar="T", help="one sentence per argument")
    add_pr_argument(parser, _FOR_PR)
    parser.add_argument("--file", type=Path, default=Path("perf-changelog.yaml"), metavar="FILE")
    kinds = ("fixed-seq-len", "agentic-coding")
    parser.add_argument("--scenario-type", nargs="+", default=[], choices=kinds, metavar="KIND")
    parser.add_argument("--evals-only", action="store_true")
    parser.add_argument("--all-evals", action="store_true")
    parser.add_argument("--append-only", action="store_true")
    parser.add_argument("--eval-min-prefill-ep", type=whole(1), metavar="N")
    parser.add_argument("--config-files", nargs="+", type=Path, metavar="F", help=_KNOWN)
    parser.set_defaults(run=add)


def check(arguments: argparse.Namespace) -> int:
    """Judge a change, mended first when asked."""
    from dataclasses import replace

    from prony.cli.changeloginputs import read_inputs
    from prony.spec.changelog import check as gate

    inputs = read_inputs(arguments)
    done: tuple[str, ...] = ()
    target: Target = arguments.pr if arguments.pr is not None else "main"
    if arguments.fix:
        from prony.base.files import write_atomic
        from prony.spec.changelog.mended import mended_lines
        from prony.spec.changelog.repair import repair

        out = _fix_target(arguments)
        mended = repair(inputs.base, inputs.head, target)
        if mended != inputs.head.raw or arguments.out is not None:
            write_atomic(out, mended)
        done = mended_lines(inputs.base.raw, inputs.head.raw, mended)
        inputs = replace(inputs, head=replace(inputs.head, raw=mended, file=str(out)))
    findings = gate.check(inputs.base, inputs.head, target, inputs.masters)
    _print_verdict(inputs, findings, arguments, done)
    return REFUSED if findings else 0


def _fix_target(arguments: argparse.Namespace) -> Path:
    from prony.base.errors import ConfigError

    if arguments.out is not None:
        return Path(arguments.out)
    if arguments.head is None:
        raise ConfigError(
            "--fix cannot change a revision: commits stay as they are",
            allowed="--head FILE, or with revisions --out FILE",
            fix=f"add --out {arguments.repo / arguments.changelog_file}, which writes the mended file to the work tree",
        )
    return Path(arguments.head)


def _print_verdict(
    inputs: "Inputs", findings: "tuple[Finding, ...]", arguments: argparse.Namespace, done: tuple[str, ...]
) -> None:
    from prony.base.units import counted
    from prony.cli.console import print_data, say

    if arguments.json:
        from prony.base.model import canonical_json

        plain = [finding.model_dump(mode="json") for finding in findings]
        verdict = {"accepted": not findings, "findings": plain, **({"mended": list(done)} if arguments.fix else {})}
        print_data(canonical_json(verdict).decode() + "\n")
        return
    if inputs.uncommitted and not arguments.fix:
        say(f"{inputs.head.file}: the work tree has changes that are not committed, so not judged here", sys.stderr)
        say("  what to do: commit them, or run 'prony check', which judges the work tree", sys.stderr)
    for line in done:
        say(f"{inputs.head.file}:{line}")
    for finding in findings:
        say(finding)
        if finding.allowed:
            say(f"  allowed here: {finding.allowed}")
    if findings:
        say(f"{inputs.head.file}: refused, {counted(len(findings), 'finding')}")
        return
    keys = "" if inputs.masters is not None else "; keys were not looked up (name --config-files)"
    say(f"{inputs.head.file}: accepted{keys}")


def select(arguments: argparse.Namespace) -> int:
    """Print the buckets."""
    import json

    from prony.base.errors import ConfigError
    from prony.cli.changeloginputs import mending, read_inputs
    from prony.cli.console import print_data, say
    from prony.spec.changelog.added import added_entries
    from prony.spec.changelog.buckets import bucket_object
    from prony.spec.changelog.check import judge, placed
    from prony.spec.changelog.compare import links_of
    from prony.spec.changelog.entry import MEND
    from prony.spec.changelog.select import select as choose

    inputs = read_inputs(arguments)
    masters = _required_masters(inputs)
    entries = added_entries(inputs.base, inputs.head)
    target: Target = arguments.pr if arguments.pr is not None else "any"
    change, findings = judge(inputs.base, inputs.head, target, links_of(inputs.base.raw))
    try:
        chosen = choose(entries, masters, _modifiers(arguments))
    except ConfigError as error:
        raise placed(change, masters, error) from None
    for finding in findings:
        told = str(finding).replace(MEND, mending(arguments))
        say(f"the gate would refuse this: {told}", sys.stderr)
    buckets = bucket_object(chosen, inputs.base_name, inputs.head_name)
    print_data(json.dumps(buckets, ensure_ascii=False, separators=(",", ":")) + "\n")
    return 0


def _required_masters(inputs: "Inputs") -> "Masters":
    from prony.base.errors import ConfigError

    if inputs.masters is None:
        raise ConfigError("rows come from configs, and none were named", fix="add --config-files FILE…")
    return inputs.masters


def _modifiers(arguments: argparse.Namespace) -> "Modifiers":
    from prony.spec.changelog.batch import Modifiers

    return Modifiers(arguments.trim_conc, arguments.all_evals, arguments.evals_only)


def explain(arguments: argparse.Namespace) -> int:
    """Print what runs for a key, and why."""
    from dataclasses import asdict

    from prony.base.model import canonical_json
    from prony.base.units import counted
    from prony.cli.changeloginputs import read_inputs
    from prony.cli.console import print_data, say
    from prony.spec.changelog.added import added_entries
    from prony.spec.changelog.explain import explain_key

    inputs = read_inputs(arguments)
    entries = added_entries(inputs.base, inputs.head)
    found = explain_key(arguments.key, entries, _required_masters(inputs), _modifiers(arguments))
    if arguments.json:
        print_data(canonical_json(asdict(found)).decode() + "\n")
        return 0
    say(f"{found.key}: {counted(found.benchmarks, 'benchmark row')}, {counted(found.evals, 'eval row')}")
    for reason in found.reasons:
        say(reason)
    return 0


def canonicalize(arguments: argparse.Namespace) -> int:
    """Print or write head with its links filled in."""
    from prony.cli.changeloginputs import read_source
    from prony.spec.changelog import merge

    base = read_source(arguments.base)
    head = read_source(arguments.head)
    with _advised(arguments):
        result = merge.canonicalize(base, head, arguments.pr)
    return _deliver(result, arguments.out)


def resolve(arguments: argparse.Namespace) -> int:
    """Print or write the merged file."""
    from prony.cli.changeloginputs import read_source
    from prony.spec.changelog import merge

    # A merge driver gets files of names that say nothing.
    base = read_source(arguments.base, "base", arguments.path)
    ours = read_source(arguments.ours, "ours", arguments.path)
    theirs = read_source(arguments.theirs, "theirs", arguments.path)
    with _advised(arguments):
        result = merge.resolve(base, ours, theirs, arguments.pr)
    return _deliver(result, arguments.out)


@contextmanager
def _advised(arguments: argparse.Namespace) -> Iterator[None]:
    """Name a command that mends in errors of a command that does not."""
    from prony.cli.changeloginputs import mending
    from prony.spec.changelog.entry import MEND, RefusedError

    try:
        yield
    except RefusedError as error:
        in_merge = getattr(arguments, "path", None) is not None
        command = "undo the merge with 'git merge --abort' and run 'prony check --fix'" if in_merge else ""
        error.fix = error.fix.replace(MEND, command or mending(arguments))
        raise


def _deliver(content: bytes, out: Path | None) -> int:
    if out is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return 0
    from prony.base.files import write_atomic

    write_atomic(out, content)
    return 0


def add(arguments: argparse.Namespace) -> int:
    """Append an entry to the file; others that append wait."""
    from prony.base.files import alone

    with alone(arguments.file):
        return _append(arguments)


def _append(arguments: argparse.Namespace) -> int:
    from prony.base.files import write_atomic
    from prony.cli.changeloginputs import default_masters, read_source
    from prony.cli.console import say
    from prony.spec.changelog.document import Source
    from prony.spec.changelog.write import NewEntry, append_entry

    begun = not arguments.file.exists()
    source = Source(b"", str(arguments.file)) if begun else read_source(arguments.file)
    configs = arguments.config_files or default_masters(arguments.file.parent)
    if configs:
        from prony.spec.changelog.batch import matching
        from prony.spec.master import load_master

        matching(arguments.keys, [item.key for item in load_master(configs).keys])
    new = NewEntry(
        keys=tuple(arguments.keys),
        description=tuple(arguments.description),
        number=arguments.pr,
        scenarios=tuple(arguments.scenario_type),
        evals_only=arguments.evals_only,
        all_evals=arguments.all_evals,
        append_only=arguments.append_only,
        eval_min_prefill_ep=arguments.eval_min_prefill_ep,
    )
    result = append_entry(source, new)
    write_atomic(arguments.file, result)
    say(f"{arguments.file}: {'begun with' if begun else 'appended'}\n{result[len(source.raw) :].decode().strip()}")
    return 0
