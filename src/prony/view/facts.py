"""What is known of where a row comes from, fact by fact, with its name in words."""

from collections.abc import Iterator
from typing import Any, Literal

from prony.base.model import Frozen
from prony.measure.result import Machine, Row
from prony.view.words import topology_label, workload_label

FactKind = Literal["text", "digest", "command", "moment", "terms"]
_DIGEST_LENGTHS = (40, 64, 71)
_HIDDEN = ("image",)  # the row tells it
_NAMES = {
    "model": ("Model", "模型"),
    "workload": ("Workload", "负载"),
    "topology": ("Topology", "拓扑"),
    "gpus_used": ("GPUs in use", "所用 GPU"),
    "gpus_allocated": ("GPUs booked", "预订 GPU"),
    "image": ("Image", "镜像"),
    "measured_at": ("Measured", "测量时间"),
    "client": ("Client", "客户端"),
    "source": ("Source", "来源"),
    "config_key": ("Configuration key", "配置键"),
    "key": ("Row key", "行键"),
    "engine": ("Engine", "引擎"),
    "engine_version": ("Engine version", "引擎版本"),
    "recipe": ("Recipe", "配方"),
    "recipe_digest": ("Recipe digest", "配方摘要"),
    "config_file": ("Configuration", "配置文件"),
    "config_digest": ("Configuration digest", "配置摘要"),
    "job_key": ("Job key", "任务键"),
    "launch_key": ("Launch key", "启动键"),
    "image_digest": ("Image digest", "镜像摘要"),
    "machine": ("Machine", "机器"),
    "clock": ("Clock", "时钟"),
    "seed": ("Seed", "随机种子"),
    "git_commit": ("Commit", "提交"),
    "prony_version": ("Prony", "Prony"),
    "definitions": ("Definitions", "定义"),
    "started_at": ("Started", "开始"),
    "ended_at": ("Ended", "结束"),
    "command": ("Command", "命令行"),
    "commands": ("Commands", "命令行"),
    "env": ("Environment", "环境变量"),
    "environment": ("Environment", "环境变量"),
    "models": ("Model files", "模型文件"),
    "model_digest": ("Model digest", "模型摘要"),
    "model_digests": ("Model digests", "模型摘要"),
    "disturbance": ("Disturbance", "干扰"),
}


class Fact(Frozen):
    """One fact in words. values: one or several texts; kind says how to write them.

    digest: may be cut and copied; command: a command line to copy; moment: ISO 8601; terms: words a page translates.
    """

    key: str
    kind: FactKind
    en: str
    zh: str
    values: tuple[str, ...]


def facts(row: Row) -> tuple[Fact, ...]:
    """Return what is known of a row's origin, each fact once; what is not known is left out."""
    own = {
        "model": row.model,
        "workload": workload_label(row),
        "topology": topology_label(row),
        "gpus_used": row.gpus_used,
        "gpus_allocated": row.gpus_allocated,
        "image": row.image,
        "measured_at": row.measured_at,
        "client": row.client,
        "source": row.source,
        "config_key": row.config_key,
        "key": row.key,
    }
    recorded = {name: value for name, value in row.provenance or () if name not in _HIDDEN}
    if recorded.get("job_key") == row.key:
        del recorded["job_key"]  # a measured row's key is the key of its job
    return tuple(fact for name, value in {**own, **recorded}.items() if (fact := _fact(name, value)))


def fact_name(name: str) -> tuple[str, str]:
    """Return a fact's name in both languages; one without words reads as its field does."""
    plain = name.replace("_", " ").capitalize()
    return _NAMES.get(name, (plain, plain))


def _fact(name: str, value: Any) -> Fact | None:
    if value is None or value == "" or value == ():
        return None
    values = tuple(_texts(value))
    en, zh = fact_name(name)
    return Fact(key=name, kind=_kind(name, values), en=en, zh=zh, values=values)


def _kind(name: str, values: tuple[str, ...]) -> FactKind:
    if "command" in name or "argv" in name:
        return "command"
    if name.endswith("_at"):
        return "moment"
    if name in ("topology", "workload", "machine"):
        return "terms"
    return "digest" if all(_is_digest(text) for text in values) else "text"


def _is_digest(text: str) -> bool:
    return len(text) in _DIGEST_LENGTHS and all(
        character in "0123456789abcdef" for character in text.removeprefix("sha256:")
    )


def _texts(value: Any) -> Iterator[str]:
    """Write one value of any shape as lines: parts of a model joined, an item of a list or mapping a line."""
    if isinstance(value, Machine):
        gib = round(value.memory_bytes / 2**30)
        sizes = (value.hostname, value.cpu, f"{value.cores} cores", f"{gib} GiB", value.kernel, *value.accelerators)
        yield " · ".join(sizes)
    elif isinstance(value, Frozen):
        told = ((name, " ".join(_texts(part))) for name, part in value if part is not None and part not in ("", ()))
        yield " · ".join(f"{name.replace('_', ' ')} {text}" for name, text in told)
    elif isinstance(value, dict):
        yield from (f"{name}={' '.join(_texts(part))}" for name, part in value.items())
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, bool):
        yield "yes" if value else "no"
    else:
        yield f"{value:.6g}" if isinstance(value, float) else str(value)
