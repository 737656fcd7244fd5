"""Lines of engines' logs: the size of the KV pool, and failures that are known with cause and remedy."""

import pytest

from prony.recipe.engines.telling import ALL, known_failure, kv_pool_tokens


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("INFO 12-01 [kv_cache_utils.py:1634] GPU KV cache size: 1,048,448 tokens", 1_048_448),
        ("[2026-08-01 TP0] max_total_num_tokens=1712345, chunked_prefill_size=131072", 1_712_345),
        ("nothing about pools", None),
    ],
)
def test_the_size_of_the_kv_pool_is_read(line: str, tokens: int | None) -> None:
    assert kv_pool_tokens(f"first\n{line}\nlast") == tokens


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("RuntimeError: gemm_a8w8_bpreshuffle failed for shape M=7237, N=32, K=4096: not supported", "gemm-shape"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 6.86 GiB", "out-of-memory"),
        ("AssertionError: Synthetic acceptance not supported with CPU sampling", "synthetic-on-cpu"),
        ("ValueError: To serve at least one request, 0.5 GiB KV cache is needed", None),
    ],
)
def test_known_failures_have_a_cause_and_a_remedy(line: str, name: str | None) -> None:
    sign = known_failure(f"x\n{line}\ny")
    assert (sign.name if sign else None) == name
    assert sign is None or (sign.cause and sign.fix)


def test_every_engine_that_counts_drafts_tells_all_that_acceptance_needs() -> None:
    for telling in ALL:
        told = telling.drafts
        assert (told.drafts is None) == (told.accepted is None) == (told.per_position is None)
