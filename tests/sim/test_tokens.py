import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.sim.tokens import VOCABULARY, decode, encode, generate


@given(st.text())
def test_every_text_comes_back_from_its_tokens(text: str) -> None:
    assert decode(encode(text)) == text


@given(st.integers(0, 2**32), st.integers(0, 300))
def test_generated_tokens_come_back_from_their_text(seed: int, count: int) -> None:
    ids = generate(seed, count)
    assert encode(decode(ids)) == ids
    assert ids == generate(seed, count)


def test_short_words_with_their_space_are_one_token_and_long_ones_several() -> None:
    assert len(encode(" the time is now")) == 4
    assert len(encode(" experience")) == 3
    assert len(encode("Ä")) == 2


def test_every_id_of_the_vocabulary_has_a_text_and_no_other() -> None:
    assert decode([256, 257, VOCABULARY - 1]) == "a a zzzz"
    for token in (-1, VOCABULARY):
        with pytest.raises(ValueError, match="is not between"):
            decode([token])
