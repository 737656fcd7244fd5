"""The one metric registry: it drives store, API, axes, CSV headers and tooltips."""

from typing import Literal

from prony.base.errors import ConfigError
from prony.base.model import Frozen

Unit = Literal["s", "tok/s", "tok/s/GPU", "tok/s/user", "req/s", "1", "W", "J/tok", "requests", "tokens"]


class Metric(Frozen):
    """A named number: its unit (SI), which way is better, over what it is taken, per what, and how it is defined."""

    key: str
    unit: Unit
    better: Literal["higher", "lower", "none"]
    scope: Literal["request", "system"]
    denominator: Literal["none", "gpu", "user", "token"] = "none"
    definition: str
    en: str
    zh: str
    explain_en: str
    explain_zh: str


def _metric(
    key: str, unit: Unit, better: Literal["higher", "lower", "none"], scope: Literal["request", "system"],
    denominator: Literal["none", "gpu", "user", "token"], words: tuple[str, str, str, str],
) -> Metric:  # fmt: skip
    en, zh, explain_en, explain_zh = words
    return Metric(
        key=key, unit=unit, better=better, scope=scope, denominator=denominator, definition=f"prony.{key}/1",
        en=en, zh=zh, explain_en=explain_en, explain_zh=explain_zh,
    )  # fmt: skip


_WHOLE: tuple[Metric, ...] = (
    _metric("ttft", "s", "lower", "request", "none", (
        "Time to first token", "首 token 时延",
        "From sending the request to the first event that carries generated tokens (content, reasoning or tool call).",
        "从发出请求到第一个携带生成 token 的事件（正文、推理或工具调用）。")),
    _metric("tpot", "s", "lower", "request", "token", (
        "Time per output token", "每输出 token 时间",
        "(last event with generated tokens − first) / (output tokens − 1), tokens as the server counted them.",
        "（最后一个携带生成 token 的事件 − 第一个）/（输出 token 数 − 1），token 数以服务端计数为准。")),
    _metric("itl", "s", "lower", "request", "token", (
        "Inter-token latency", "token 间时延",
        "Gap between tokens; an event of k tokens after a gap g counts as k latencies of g/k.",
        "相邻 token 的间隔；间隔 g 后一次到达 k 个 token 记为 k 个 g/k。")),
    _metric("event_gap", "s", "lower", "request", "none", (
        "Gap between stream events", "流事件间隔",
        "Gap between events with generated tokens, however many tokens they carry; the reference publishes this as ITL.",
        "相邻两个携带生成 token 的事件的间隔，与其携带的 token 数无关；参考平台以 ITL 之名发布此值。")),
    _metric("e2el", "s", "lower", "request", "none", (
        "End-to-end latency", "端到端时延",
        "From sending the request to the last event with generated tokens.",
        "从发出请求到最后一个携带生成 token 的事件。")),
    _metric("ttft_scheduled", "s", "lower", "request", "none", (
        "Time to first token from when it was due", "自计划时刻的首 token 时延",
        "Open loop: from when the request was due to the first event that carries generated tokens; the wait in the client counts.",
        "开环：从请求计划发出的时刻到第一个携带生成 token 的事件；客户端内的等待计入。")),
    _metric("e2el_scheduled", "s", "lower", "request", "none", (
        "End-to-end latency from when it was due", "自计划时刻的端到端时延",
        "Open loop: from when the request was due to the last event with generated tokens; the wait in the client counts.",
        "开环：从请求计划发出的时刻到最后一个携带生成 token 的事件；客户端内的等待计入。")),
    _metric("interactivity", "tok/s/user", "higher", "request", "user", (
        "Interactivity", "交互速度",
        "1 / TPOT at the same percentile (the slow tail); the mean is 1 / mean TPOT.",
        "同一分位的 1 / TPOT（慢尾）；均值为 1 / 平均 TPOT。")),
    _metric("tput", "tok/s", "higher", "system", "none", (
        "Total throughput", "总吞吐", "Input and output tokens of completed requests per second of the measured load.",
        "已完成请求的输入加输出 token 数 / 测量时长。")),
    _metric("input_tput", "tok/s", "higher", "system", "none", (
        "Input throughput", "输入吞吐", "Input tokens of completed requests per second of the measured load.",
        "已完成请求的输入 token 数 / 测量时长。")),
    _metric("output_tput", "tok/s", "higher", "system", "none", (
        "Output throughput", "输出吞吐", "Output tokens of completed requests per second of the measured load.",
        "已完成请求的输出 token 数 / 测量时长。")),
    _metric("tput_per_gpu", "tok/s/GPU", "higher", "system", "gpu", (
        "Throughput per GPU", "每 GPU 吞吐", "Total throughput divided by all GPUs in use.", "总吞吐 / 所用 GPU 总数。")),
    _metric("input_tput_per_gpu", "tok/s/GPU", "higher", "system", "gpu", (
        "Input throughput per GPU", "每 GPU 输入吞吐", "Input throughput divided by all GPUs in use.", "输入吞吐 / 所用 GPU 总数。")),
    _metric("output_tput_per_gpu", "tok/s/GPU", "higher", "system", "gpu", (
        "Output throughput per GPU", "每 GPU 输出吞吐", "Output throughput divided by all GPUs in use.", "输出吞吐 / 所用 GPU 总数。")),
    _metric("input_tput_per_prefill_gpu", "tok/s/GPU", "higher", "system", "gpu", (
        "Input throughput per prefill GPU", "每预填充 GPU 输入吞吐", "Role-local: input throughput divided by prefill GPUs.",
        "角色内：输入吞吐 / 预填充 GPU 数。")),
    _metric("output_tput_per_decode_gpu", "tok/s/GPU", "higher", "system", "gpu", (
        "Output throughput per decode GPU", "每解码 GPU 输出吞吐", "Role-local: output throughput divided by decode GPUs.",
        "角色内：输出吞吐 / 解码 GPU 数。")),
    _metric("request_rate", "req/s", "higher", "system", "none", (
        "Request rate", "请求速率", "Completed requests per second of the measured load.", "已完成请求数 / 测量时长。")),
    _metric("duration", "s", "none", "system", "none", (
        "Measured duration", "测量时长", "From the first request sent to the last end.", "从第一个请求发出到最后一个结束。")),
    _metric("concurrency_achieved", "requests", "none", "system", "none", (
        "Achieved concurrency", "实际并发",
        "Time-weighted mean of requests in flight while the loop is full: from the send that fills it (open loop: the first) to the last send.",
        "环路满载期间（从填满并发的那次发送，开环则从首次发送，到最后一次发送）在途请求数的时间加权均值。")),
    _metric("requests_completed", "requests", "none", "system", "none", (
        "Completed requests", "完成请求数", "Requests that ended without a fault.", "无故障结束的请求数。")),
    _metric("requests_failed", "requests", "lower", "system", "none", (
        "Failed requests", "失败请求数", "Requests that ended with a fault.", "以故障结束的请求数。")),
    _metric("input_tokens", "tokens", "none", "system", "none", (
        "Input tokens", "输入 token 数", "Input tokens of completed requests.", "已完成请求的输入 token 数。")),
    _metric("output_tokens", "tokens", "none", "system", "none", (
        "Output tokens", "输出 token 数", "Output tokens of completed requests.", "已完成请求的输出 token 数。")),
    _metric("acceptance_length", "1", "higher", "system", "none", (
        "Acceptance length", "接受长度", "1 + accepted draft tokens / verification steps, from the engine's counters.",
        "1 + 被接受的草稿 token 数 / 验证步数，取自引擎计数器。")),
    _metric("avg_power", "W", "lower", "system", "gpu", (
        "Mean power per GPU", "每 GPU 平均功率", "Mean electrical power of the GPUs in use in the measured window.",
        "测量窗口内所用 GPU 的平均功率。")),
    _metric("prefill_avg_power", "W", "lower", "system", "gpu", (
        "Mean power per prefill GPU", "每预填充 GPU 平均功率", "Role-local: mean electrical power of the prefill GPUs.",
        "角色内：预填充 GPU 的平均功率。")),
    _metric("decode_avg_power", "W", "lower", "system", "gpu", (
        "Mean power per decode GPU", "每解码 GPU 平均功率", "Role-local: mean electrical power of the decode GPUs.",
        "角色内：解码 GPU 的平均功率。")),
    _metric("energy_per_input_token", "J/tok", "lower", "system", "token", (
        "Energy per input token", "每输入 token 能耗", "GPU energy in the window divided by input tokens.",
        "窗口内 GPU 能量 / 输入 token 数。")),
    _metric("prefill_energy_per_input_token", "J/tok", "lower", "system", "token", (
        "Prefill energy per input token", "每输入 token 预填充能耗", "Role-local: energy of the prefill GPUs divided by input tokens.",
        "角色内：预填充 GPU 能量 / 输入 token 数。")),
    _metric("decode_energy_per_output_token", "J/tok", "lower", "system", "token", (
        "Decode energy per output token", "每输出 token 解码能耗", "Role-local: energy of the decode GPUs divided by output tokens.",
        "角色内：解码 GPU 能量 / 输出 token 数。")),
    _metric("energy_per_output_token", "J/tok", "lower", "system", "token", (
        "Energy per output token", "每输出 token 能耗", "GPU energy in the window divided by output tokens.",
        "窗口内 GPU 能量 / 输出 token 数。")),
    _metric("energy_per_token", "J/tok", "lower", "system", "token", (
        "Energy per token", "每 token 能耗", "GPU energy in the window divided by input and output tokens.",
        "窗口内 GPU 能量 /（输入 + 输出 token 数）。")),
)  # fmt: skip

STEADY = "_steady"
"""Ends the keys of metrics over the steady window."""
STEADY_KEYS = (
    "ttft", "tpot", "itl", "e2el", "interactivity", "tput", "input_tput", "output_tput", "tput_per_gpu",
    "input_tput_per_gpu", "output_tput_per_gpu", "request_rate",
)  # fmt: skip
_STEADY_EN: dict[str, str] = {
    "ttft": "Of requests whose first token came in it.",
    "tpot": "Of requests whose last token came in it.",
    "itl": "Of gaps that ended in it.",
    "e2el": "Of requests whose last token came in it.",
    "interactivity": "1 / TPOT in it.",
    "request_rate": "Requests whose last token came in it.",
}
_STEADY_ZH: dict[str, str] = {
    "ttft": "取首 token 落在其中的请求。",
    "tpot": "取末 token 落在其中的请求。",
    "itl": "取在其中结束的间隔。",
    "e2el": "取末 token 落在其中的请求。",
    "interactivity": "其中的 1 / TPOT。",
    "request_rate": "末 token 落在其中的请求数。",
}
_TOKENS_EN = "Output tokens that came in it, and input tokens of requests whose first token came in it."
_TOKENS_ZH = "其中到达的输出 token 数，以及首 token 落在其中的请求的输入 token 数。"


def _steady(whole: Metric) -> Metric:
    """Derive the metric of the steady window: warm-up cut by MSER-5, end at the last send."""
    return whole.model_copy(
        update={
            "key": f"{whole.key}{STEADY}",
            "definition": f"prony.{whole.key}{STEADY}/1",
            "en": f"{whole.en}, steady state",
            "zh": f"{whole.zh}（稳态）",
            "explain_en": "In the steady window, from the end of the warm-up (MSER-5) to the last send. "
            + _STEADY_EN.get(whole.key, _TOKENS_EN),
            "explain_zh": "稳态窗口（MSER-5 判定的预热结束到最后一次发送）内。" + _STEADY_ZH.get(whole.key, _TOKENS_ZH),
        }
    )


METRICS: tuple[Metric, ...] = (
    *_WHOLE,
    *(_steady(found) for found in _WHOLE if found.key in STEADY_KEYS),
    _metric("duration_steady", "s", "none", "system", "none", (
        "Steady window", "稳态窗口", "Length of the steady window: from the end of the warm-up (MSER-5) to the last send.",
        "稳态窗口长度：从预热结束（MSER-5）到最后一次发送。")),
)  # fmt: skip

_BY_KEY = {metric.key: metric for metric in METRICS}

# No server, meter or count of today comes near these bounds (published rows reach 3e4 tok/s/GPU, 1e3 W, 1e3 s).
_PLAUSIBLE: dict[Unit, tuple[float, float]] = {
    "s": (0.0, 1e6),
    "tok/s": (0.0, 1e11),
    "tok/s/GPU": (0.0, 1e7),
    "tok/s/user": (0.0, 1e7),
    "req/s": (0.0, 1e7),
    "1": (0.0, 1e4),
    "W": (0.0, 1e5),
    "J/tok": (0.0, 1e6),
    "requests": (0.0, 1e9),
    "tokens": (0.0, 1e15),
}


def is_metric(key: str) -> bool:
    """Return whether a metric of that key is registered."""
    return key in _BY_KEY


def plausible(key: str) -> tuple[float, float]:
    """Return the least and the greatest value, in its unit, that a statistic of a metric can have."""
    return _PLAUSIBLE[metric(key).unit]


def metric(key: str) -> Metric:
    """Return a metric by key. Raises ConfigError that lists the known ones."""
    found = _BY_KEY.get(key)
    if found is None:
        raise ConfigError(f"'{key}' is not a metric", allowed=", ".join(_BY_KEY))
    return found
