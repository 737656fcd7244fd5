"""What is known of where a row comes from, fact by fact, with its name in words."""

import re
import shlex
from collections.abc import Iterator
from typing import Any, Literal

from prony.base.model import Frozen
from prony.base.units import duration, significant
from prony.measure.result import Machine, Provenance, RoleCommand, Row
from prony.view.words import topology_label, workload_label

FactKind = Literal["text", "digest", "command", "moment", "terms"]
_DIGEST_LENGTHS = (40, 64, 71)
# Told by the row, or by another fact.
_HIDDEN = ("image", "model.id", "client.started_unix_s")
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
    "commands": ("Command", "命令行"),
    "model.revision": ("Model revision", "模型修订"),
    "model.location": ("Model location", "模型位置"),
    "model.files": ("Model files", "模型文件"),
    "client.clock": ("Client: receive stamps", "客户端：接收时间戳"),
    "client.loop_lag_p99_s": ("Client: loop lag, p99", "客户端：循环延迟 p99"),
    "client.send_lag_p99_s": ("Client: send lag, p99", "客户端：发送延迟 p99"),
    "client.merged_reads": ("Client: merged reads", "客户端：合并读取次数"),
    "client.reads": ("Client: reads", "客户端：读取次数"),
    "client.cpu_s": ("Client: CPU time", "客户端：CPU 时间"),
    "client.peak_rss_bytes": ("Client: peak memory", "客户端：内存峰值"),
    "client.connections": ("Client: connections", "客户端：连接数"),
    "client.connect_mean_s": ("Client: mean connect time", "客户端：平均建连时间"),
    "client.prompt_lengths": ("Client: prompt lengths", "客户端：提示长度来源"),
    "client.clock_steps": ("Client: clock steps", "客户端：时钟跳变次数"),
    "client.workers": ("Client: processes", "客户端：进程数"),
    "client.cpu_share": ("Client: share of a core, busiest process", "客户端：最忙进程的单核占比"),
    "client.total_cpu_s": ("Client: CPU since its start", "客户端：启动以来 CPU 时间"),
    "client.dns_s": ("Client: host look-up", "客户端：域名解析时间"),
    "client.tls_mean_s": ("Client: mean TLS handshake", "客户端：平均 TLS 握手时间"),
    "client.start_s": ("Client: start to first request", "客户端：启动到首个请求"),
    "client.detail": ("Client: detail", "客户端：说明"),
    "disturbance.foreign_cpu_share": ("CPU share of other programs", "其他程序 CPU 占比"),
    "disturbance.steal_share": ("CPU share of other machines", "其他虚拟机 CPU 占比"),
    "disturbance.load1": ("Load average before", "测量前 1 分钟负载"),
    "disturbance.cores": ("Cores watched", "监测核数"),
    "engine_facts.slots": ("Engine: slots", "引擎：并发槽位"),
    "engine_facts.output_tokens": ("Engine: output tokens", "引擎：输出 token 数"),
    "engine_facts.drafts": ("Engine: drafts verified", "引擎：验证草稿数"),
    "engine_facts.accepted": ("Engine: draft tokens accepted", "引擎：接受草稿 token 数"),
    "engine_facts.accepted_at": ("Engine: accepted by position", "引擎：各位置接受数"),
    "engine_facts.external_hits": ("Engine: prompt tokens from another's KV", "引擎：来自外部 KV 的提示 token 数"),
    "kv_pool_tokens": ("Engine: KV pool, in tokens", "引擎：KV 池容量（token）"),
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
    recorded = _recorded(row.provenance) if row.provenance else {}
    if recorded.get("job_key") == row.key:
        del recorded["job_key"]  # a measured row's key is the key of its job
    return tuple(fact for name, value in {**own, **recorded}.items() if (fact := _fact(name, value)))


def _recorded(provenance: Provenance) -> dict[str, Any]:
    """Return what was recorded by name; parts of a record get a dotted name of their own."""
    found: dict[str, Any] = {}
    for name, value in provenance:
        if isinstance(value, Frozen) and not isinstance(value, Machine):
            found.update({f"{name}.{part}": inner for part, inner in value})
        else:
            found[name] = value
    return {name: value for name, value in found.items() if name not in _HIDDEN}


def fact_name(name: str) -> tuple[str, str]:
    """Return a fact's name in both languages; one without words reads as its field does."""
    plain = name.replace("_", " ").replace(".", ": ").capitalize()
    return _NAMES.get(name, (plain, plain))


def _fact(name: str, value: Any) -> Fact | None:
    if value is None or value in ("", ()) or (name == "model.location" and value == "none"):
        return None
    values = (_measure(name, value),) if isinstance(value, int | float) else tuple(_texts(value))
    en, zh = fact_name(name)
    return Fact(key=name, kind=_kind(name, values), en=en, zh=zh, values=values)


def _kind(name: str, values: tuple[str, ...]) -> FactKind:
    if name == "commands":
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


def _measure(name: str, value: float) -> str:
    if name.endswith("_s"):
        return duration(value)
    if name.endswith("_bytes"):
        return f"{significant(value / 2**20)} MiB"
    if name.endswith("_share"):
        return f"{significant(100 * value)} %"
    return str(value) if isinstance(value, int) else significant(value)


def _texts(value: Any) -> Iterator[str]:
    """Write one value of any shape as lines: parts of a record joined, an item of a list a line."""
    if isinstance(value, Machine):
        gib = round(value.memory_bytes / 2**30)
        sizes = (value.hostname, value.cpu, f"{value.cores} cores", f"{gib} GiB", value.kernel, *value.accelerators)
        yield " · ".join(sizes)
    elif isinstance(value, RoleCommand):
        role = "" if value.role == "agg" and value.replicas == 1 else f"# {value.role} ×{value.replicas}\n"
        env = (f"{variable.name}={_quoted(variable.value)}" for variable in value.env)
        yield role + " ".join((*env, *map(_quoted, value.command)))
    elif isinstance(value, Frozen):
        yield " · ".join(text for _, part in value if part is not None for text in _texts(part))
    elif isinstance(value, tuple):
        for part in value:
            yield from _texts(part)
    else:
        yield str(value)


def _quoted(word: str) -> str:
    """Quote a word for a shell; placeholders such as {port:http} stay as they are."""
    return word if re.fullmatch(r"[\w@%+=:,./{}~-]+", word) else shlex.quote(word)
