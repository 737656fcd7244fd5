"""Names for people: SKUs, frameworks, precisions, workloads, and whole lines in words."""

from prony.measure.result import Row

_FRAMEWORKS = {
    "sglang": "SGLang",
    "vllm": "vLLM",
    "trt": "TRT-LLM",
    "llamacpp": "llama.cpp",
    "atom": "ATOM",
    "dynamo-trt": "Dynamo TRT-LLM",
    "dynamo-sglang": "Dynamo SGLang",
    "dynamo-vllm": "Dynamo vLLM",
    "mori-sglang": "MoRI SGLang",
    "sim": "simulator",
}
_SPEC_DECODING = {"mtp": "MTP", "draft_model": "draft model"}
# One colour each in style.css; vendors are hue families there.
FAMILIES = ("gb300", "gb200", "b300", "b200", "h200", "h100", "mi355x", "mi325x", "mi300x", "cpu")
SEPARATOR = " · "


def hardware_label(hardware: str) -> str:
    """Return a SKU as people write it: MI355X, CPU."""
    return hardware.upper()


def framework_label(framework: str) -> str:
    """Return a serving framework as its project writes it; unknown ones as they are."""
    return _FRAMEWORKS.get(framework, framework)


def spec_decoding_label(kind: str) -> str:
    """Return a kind of speculative decoding as people write it: MTP, draft model, none."""
    return _SPEC_DECODING.get(kind, kind)


def sku_family(hardware: str) -> str:
    """Return the name of the colour of a SKU (`h200`, `mi355x`, `cpu`, or `other`)."""
    name = hardware.lower()
    return next((family for family in FAMILIES if name.startswith(family)), "other")


def series_label(row: Row) -> str:
    """Return a row's line in words: MI355X · SGLang · FP8 · MTP · disaggregated."""
    parts = (
        hardware_label(row.hardware),
        framework_label(row.framework),
        row.precision.upper(),
        spec_decoding_label(row.spec_decoding) if row.spec_decoding != "none" else "",
        "disagg" if row.disagg else "",
        "simulated" if row.simulated else "",
    )
    return SEPARATOR.join(part for part in parts if part)


def topology_label(row: Row) -> str:
    """Return how a row is spread over devices: TP8 EP8, or prefill 2×TP4 + decode TP8."""
    pools = row.topology.pools
    texts = []
    for pool in pools:
        sizes = [("TP", pool.tp), ("PP", pool.pp), ("DP", pool.dp), ("EP", pool.ep or 1)]
        size = " ".join(f"{name}{value}" for name, value in sizes if value > 1 or name == "TP")
        count = f"{pool.replicas}×" if pool.replicas != 1 else ""
        texts.append(f"{pool.role} {count}{size}" if len(pools) > 1 else f"{count}{size}")
    return " + ".join(texts)


def point_label(row: Row) -> str:
    """Return one point in words, with topology and concurrency."""
    return SEPARATOR.join((series_label(row), topology_label(row), f"{row.concurrency} concurrent"))


def workload_id(row: Row) -> str:
    """Return the workload as a link writes it: fixed-seq-len-1024-1024."""
    return "-".join(str(part) for part in (row.workload, row.isl, row.osl) if part is not None)


def workload_label(row: Row) -> str:
    """Return the workload in tokens in / tokens out: 1k / 8k, 128 / 32; agentic ones by name."""
    if row.isl is None or row.osl is None:
        return row.workload
    return f"{_tokens(row.isl)} / {_tokens(row.osl)}"


def _tokens(count: int) -> str:
    return f"{count // 1024}k" if count % 1024 == 0 and count else str(count)
