"""How each engine is told an acceptance length, in its own words and unit."""

from collections.abc import Iterator


def switches(length: float, steps: int) -> Iterator[tuple[str, str]]:
    """Yield engine and words. length: tokens per step, the bonus token included; TensorRT-LLM counts without it."""
    config = f'"rejection_sample_method":"synthetic","synthetic_acceptance_length":{length}'
    yield "vllm", f"--speculative-config '{{…,\"num_speculative_tokens\":{steps},{config}}}'"
    yield (
        "sglang",
        (
            f"SGLANG_SIMULATE_ACC_LEN={length} SGLANG_SIMULATE_ACC_METHOD=match-expected "
            "SGLANG_SIMULATE_ACC_TOKEN_MODE=real-draft-token"
        ),
    )
    yield "trtllm", f"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS={length - 1:.4g}"
    yield "atom", f"--spec-decode-acceptance-length {length}"
    yield "llamacpp", f"--spec-synth-len {length}"
