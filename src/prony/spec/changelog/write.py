"""A new entry, written so that the gate accepts it."""

import json
import re
from dataclasses import dataclass

from prony.base.errors import ConfigError
from prony.spec.changelog.check import judge
from prony.spec.changelog.compare import links_of, separator_after
from prony.spec.changelog.document import Source
from prony.spec.changelog.entry import ChangelogEntry, RefusedError

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._*-]*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


@dataclass(frozen=True)
class NewEntry:
    """What an entry shall ask for; number: the pull request's, None for the placeholder."""

    keys: tuple[str, ...]
    description: tuple[str, ...]
    number: int | None = None
    scenarios: tuple[str, ...] = ()
    evals_only: bool = False
    all_evals: bool = False
    append_only: bool = False
    eval_min_prefill_ep: int | None = None


def append_entry(source: Source, new: NewEntry) -> bytes:
    """Return the file with one entry more. Raises ConfigError when the file is broken or the entry cannot be."""
    links = links_of(source.raw)
    link = links.placeholder if new.number is None else links.of(new.number)
    result = source.raw + separator_after(source.raw) + _block(new, link)
    change, findings = judge(source, Source(result, source.file), "any", links)
    if findings or change is None:
        raise RefusedError(findings[0])
    _require_equal(change.additions[0].asked, new)
    return result


def _require_equal(read: ChangelogEntry, new: NewEntry) -> None:
    if read.config_keys != new.keys or read.description != new.description:
        raise ConfigError("these words cannot be written as YAML and read back", fix="use printable text")


def _block(new: NewEntry, link: str) -> bytes:
    lines = ["- config-keys:", *(f"    - {_scalar(key)}" for key in new.keys)]
    if new.scenarios:
        lines += ["  scenario-type:", *(f"    - {name}" for name in new.scenarios)]
    lines += ["  description:", *(f"    - {_quoted(text)}" for text in new.description)]
    flags = (("evals-only", new.evals_only), ("all-evals", new.all_evals), ("append-only", new.append_only))
    lines += [f"  {name}: true" for name, wanted in flags if wanted]
    if new.eval_min_prefill_ep is not None:
        lines.append(f"  eval-min-prefill-ep: {new.eval_min_prefill_ep}")
    lines += [f"  pr-link: {link}", ""]
    try:
        return "\n".join(lines).encode()
    except UnicodeEncodeError:
        raise ConfigError("the text is not UTF-8", fix="type it in a UTF-8 terminal") from None


def _scalar(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else _quoted(text)


def _quoted(text: str) -> str:
    """Write a double-quoted scalar: what is not printable as an escape."""
    shown = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escape(char) for char in shown)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\U{code:08x}" if code > 0xFFFF else char if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"
