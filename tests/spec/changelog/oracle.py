"""The strict rules, written a second time as plainly as they are stated, to judge the judge."""

import re
from typing import Any

import yaml

FIELDS = {
    "config-keys", "description", "pr-link", "evals-only", "all-evals", "append-only", "eval-min-prefill-ep",
    "scenario-type",
}  # fmt: skip
SCENARIOS = {"fixed-seq-len", "agentic-coding"}
PULL = "https://github.com/SemiAnalysisAI/InferenceX/pull/"
TRUE_WORDS, FALSE_WORDS = {"true", "t", "yes", "y", "on", "1"}, {"false", "f", "no", "n", "off", "0"}


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A safe loader that refuses duplicate keys."""


def _mapping(loader: Any, node: yaml.MappingNode) -> Any:
    keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    if len(keys) != len(set(keys)):
        raise yaml.YAMLError("duplicate")
    value: dict[Any, Any] = {}
    yield value
    value.update(yaml.SafeLoader.construct_mapping(loader, node))


Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _flag(value: object) -> bool | None:
    """A boolean as a lenient reader takes it; None where it takes none."""
    text = value.lower() if isinstance(value, str) else str(int(value)) if value in (0, 1) else ""  # type: ignore[call-overload]
    return True if text in TRUE_WORDS else False if text in FALSE_WORDS else None


def _texts(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(item, str) for item in value)


def _entry(entry: object) -> bool:
    if not isinstance(entry, dict) or any(not isinstance(name, str) for name in entry):
        return False
    plain = {name.replace("_", "-"): value for name, value in entry.items()}
    if len(plain) != len(entry) or set(plain) - FIELDS or any("_" in name and "-" in name for name in entry):
        return False
    flags = [_flag(plain.get(name, False)) for name in ("evals-only", "all-evals", "append-only")]
    least = plain.get("eval-min-prefill-ep")
    return (
        _texts(plain.get("config-keys"))
        and _texts(plain.get("description"))
        and isinstance(plain.get("pr-link"), str)
        and None not in flags
        and (least is None or (isinstance(least, int) and least >= 1))
        and (
            plain.get("scenario-type") is None
            or (_texts(plain["scenario-type"]) and set(plain["scenario-type"]) <= SCENARIOS)
        )
        and not (flags[2] and (flags[0] or flags[1] or least is not None))
    )


def entries_of(raw: bytes) -> list[dict[str, Any]] | None:
    """The entries of a file, or None where it breaks a rule by itself."""
    if not raw.endswith(b"\n") or any(byte in raw for byte in (b"\r", b"\t", b"\0")):
        return None
    try:
        text = raw.decode("utf-8")
        data = yaml.load(text, Loader)
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError, TypeError):
        return None
    lines = [line for line in text.splitlines() if line.startswith("- config-keys:")]
    if not isinstance(data, list) or len(lines) != len(data) or not all(_entry(entry) for entry in data):
        return None
    return data


def accepts(base: bytes, head: bytes, pr: int | None) -> bool:
    """Whether the strict rules accept a change."""
    old, new = entries_of(base), entries_of(head)
    if old is None or new is None or len(new) < len(old):
        return False
    corrections = 0
    for was, now in zip(old, new, strict=False):
        if was == now:
            continue
        same = {**was, "pr-link": ""} == {**now, "pr-link": ""}
        if not same or not re.fullmatch(re.escape(PULL) + "[0-9]+", now.get("pr-link", "")):
            return False
        corrections += 1
    added = new[len(old) :]
    if added and corrections:
        return False
    for entry in added:
        link = entry.get("pr-link", "")
        if pr is None and not re.fullmatch(re.escape(PULL) + "[0-9]+", link):
            return False
        if pr is not None and link not in ("XXX", f"{PULL}XXX", f"{PULL}{pr}"):
            return False
    if corrections:
        return _lines_differ_in_links_alone(base, head, corrections)
    modes = {bool(_flag(entry.get("append-only", entry.get("append_only", False)))) for entry in added}
    return bool(added) and len(modes) == 1 and _appended(base, head, len(added))


def _lines_differ_in_links_alone(base: bytes, head: bytes, corrections: int) -> bool:
    was, now = base.splitlines(), head.splitlines()
    changed = [(a, b) for a, b in zip(was, now, strict=False) if a != b]
    links = all(a.startswith(b"  pr-link:") and b.startswith(b"  pr-link:") for a, b in changed)
    return len(was) == len(now) and links and len(changed) == corrections


def _appended(base: bytes, head: bytes, count: int) -> bool:
    if not head.startswith(base) or head.endswith(b"\n\n"):
        return False
    if not head[len(base) :].startswith((b"" if base.endswith(b"\n\n") else b"\n") + b"- config-keys:"):
        return False
    starts = [match.start() for match in re.finditer(rb"(?m)^- config-keys:[^\r\n]*\n", head)][-count:]
    return all(head[:at].endswith(b"\n\n") and not head[:at].endswith(b"\n\n\n") for at in starts[1:])
