"""What engines tell of themselves: names of their metrics, and lines of their logs that say something."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class LogPattern:
    """A line of an engine's log that says something. regex: its named groups are the values."""

    name: str
    regex: str
    cause: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Drafts:
    """Names of the counters in which an engine tells how its drafts fared.

    drafts: verification steps; drafted, accepted: tokens, the bonus token not among them; per_position: accepted,
    labelled `position`. length: where there are no counters, a gauge of tokens per step (averaged over time, no error).
    """

    drafts: str | None = None
    drafted: str | None = None
    accepted: str | None = None
    per_position: str | None = None
    length: str | None = None


@dataclass(frozen=True)
class Telling:
    """What an engine tells of itself: Prometheus names, and log lines (KV pool size, known failures)."""

    metrics_path: str | None = "/metrics"
    drafts: Drafts = Drafts()
    running: str | None = None
    waiting: str | None = None
    kv_usage: str | None = None
    prompt_tokens: str | None = None
    generated_tokens: str | None = None
    external_hits: str | None = None
    kv_pool: tuple[LogPattern, ...] = ()
    failures: tuple[LogPattern, ...] = ()


SILENT = Telling()

VLLM = Telling(
    drafts=Drafts(
        drafts="vllm:spec_decode_num_drafts_total",
        drafted="vllm:spec_decode_num_draft_tokens_total",
        accepted="vllm:spec_decode_num_accepted_tokens_total",
        per_position="vllm:spec_decode_num_accepted_tokens_per_pos_total",
    ),
    running="vllm:num_requests_running",
    waiting="vllm:num_requests_waiting",
    kv_usage="vllm:kv_cache_usage_perc",
    prompt_tokens="vllm:prompt_tokens_total",
    generated_tokens="vllm:generation_tokens_total",
    external_hits="vllm:external_prefix_cache_hits_total",
    kv_pool=(LogPattern("kv-pool-tokens", r"GPU KV cache size: (?P<tokens>[\d,]+) tokens"),),
    failures=(
        LogPattern(
            "out-of-memory",
            r"(torch\.OutOfMemoryError|CUDA out of memory|HIP out of memory)",
            "the device's memory does not hold weights, graphs and KV",
            "lower gpu-memory-utilization or max-num-seqs, or spread over more devices",
        ),
        LogPattern(
            "kv-pool-too-small",
            r"is larger than the maximum number of tokens that can be stored in KV cache",
            "one request of this context does not fit the KV pool",
            "lower the context, or raise gpu-memory-utilization",
        ),
        LogPattern(
            "synthetic-on-cpu",
            r"Synthetic acceptance not supported with CPU sampling",
            "vLLM simulates acceptance on GPUs only",
            "measure real acceptance on a CPU: spec.acceptance: real",
        ),
    ),
)

SGLANG = Telling(
    drafts=Drafts(length="sglang:spec_accept_length"),
    running="sglang:num_running_reqs",
    waiting="sglang:num_queue_reqs",
    kv_usage="sglang:token_usage",
    prompt_tokens="sglang:prompt_tokens_total",
    generated_tokens="sglang:generation_tokens_total",
    kv_pool=(LogPattern("kv-pool-tokens", r"max_total_num_tokens=(?P<tokens>\d+)"),),
    failures=(
        LogPattern(
            "out-of-memory",
            r"(torch\.OutOfMemoryError|CUDA out of memory|HIP out of memory|Not enough memory)",
            "the device's memory does not hold weights, graphs and KV",
            "lower mem-fraction-static or max-running-requests, or spread over more devices",
        ),
        LogPattern(
            "gemm-shape",
            r"gemm_a8w8_bpreshuffle failed for shape M=\d+, N=(?P<n>\d+), K=\d+",
            "aiter has no pre-shuffled FP8 kernel for this width of a shard",
            "lower TP until the width is a multiple of 64 (prony plan check says which points are affected)",
        ),
        LogPattern(
            "shared-experts-ep",
            r"\(num_experts - num_shared_slots\) % moe_ep_size",
            "routed experts less the shared slots do not divide among the EP ranks",
            "turn DP attention off for this MoE backend, or fuse no shared experts",
        ),
    ),
)

TRTLLM = Telling(
    metrics_path="/prometheus/metrics",
    failures=(
        LogPattern(
            "out-of-memory",
            r"(CUDA out of memory|OutOfMemoryError|cudaErrorMemoryAllocation)",
            "the device's memory does not hold weights, graphs and KV",
            "lower free_gpu_memory_fraction or max_batch_size, or spread over more devices",
        ),
    ),
    kv_pool=(LogPattern("kv-pool-tokens", r"KV cache.*max_tokens=(?P<tokens>\d+)"),),
)

ATOM = Telling(
    drafts=Drafts(length="atom:mtp_average_tokens_per_forward"),
    failures=(
        LogPattern(
            "out-of-memory",
            r"(torch\.OutOfMemoryError|HIP out of memory)",
            "the device's memory does not hold weights, graphs and KV",
            "lower gpu-memory-utilization or max-num-seqs, or spread over more devices",
        ),
    ),
)

LLAMACPP = Telling(
    drafts=Drafts(
        drafts="llamacpp:spec_decode_num_drafts_total",
        drafted="llamacpp:spec_decode_num_draft_tokens_total",
        accepted="llamacpp:spec_decode_num_accepted_tokens_total",
        per_position="llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
    ),
    running="llamacpp:requests_processing",
    waiting="llamacpp:requests_deferred",
    prompt_tokens="llamacpp:prompt_tokens_total",
    generated_tokens="llamacpp:tokens_predicted_total",
)


ALL = (VLLM, SGLANG, TRTLLM, ATOM, LLAMACPP)
"""Of all engines that tell something."""


@dataclass(frozen=True)
class Sign:
    """A known failure found in a log: what it is called, its cause and what to do."""

    name: str
    cause: str
    fix: str


def known_failure(log: str) -> Sign | None:
    """Return the first known failure, of any engine, that a log shows."""
    for pattern in (pattern for telling in ALL for pattern in telling.failures):
        if re.search(pattern.regex, log):
            return Sign(pattern.name, pattern.cause, pattern.fix)
    return None


def kv_pool_tokens(log: str) -> int | None:
    """Return the size of the KV pool that a log tells, in tokens."""
    for pattern in (pattern for telling in ALL for pattern in telling.kv_pool):
        match = re.search(pattern.regex, log)
        if match and match.groupdict().get("tokens"):
            return int(match["tokens"].replace(",", ""))
    return None
