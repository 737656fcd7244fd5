"""Serving frameworks that results may name, and older names of the same."""

# Names in the reference's master configs and published rows (InferenceX, 2026), and this project's own engines.
FRAMEWORKS = frozenset(
    {
        "atom",
        "atom-disagg",
        "dynamo-sglang",
        "dynamo-trt",
        "dynamo-vllm",
        "llamacpp",
        "llmd-vllm",
        "mooncake-atom",
        "mori-sglang",
        "sglang",
        "sglang-disagg",
        "sim",
        "tilert",
        "trt",
        "vllm",
        "vllm-disagg",
    }
)

# The reference's result mapper renames these before it stores them (InferenceX-app, normalizers).
ALIASES = {
    "atom-disagg": "mooncake-atom",
    "dynamo-trtllm": "dynamo-trt",
    "sglang-disagg": "mori-sglang",
    "trtllm": "trt",
}


def framework_name(name: str) -> str:
    """Return the published name of a framework; one that is not known stays as it is."""
    plain = name.strip().lower()
    return ALIASES.get(plain, plain)
