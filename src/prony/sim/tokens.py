"""A tokenizer that needs no model: runs of up to four small letters, with or without a space before, and bytes."""

import random
import re
from collections.abc import Iterable

_LETTERS = 26
_LONGEST = 4
_BYTES = 256
_WORDS = sum(_LETTERS**length for length in range(1, _LONGEST + 1))
VOCABULARY = _BYTES + 2 * _WORDS
_WORD = re.compile(r" ?[a-z]{1,4}")


def encode(text: str) -> list[int]:
    """Return the ids of a text."""
    ids: list[int] = []
    end = 0
    for match in _WORD.finditer(text):
        ids += text[end : match.start()].encode()
        ids.append(_id_of(match[0]))
        end = match.end()
    return [*ids, *text[end:].encode()]


def decode(ids: Iterable[int]) -> str:
    """Return the text of ids; `encode` gives words that begin with a space back exactly. Raises ValueError."""
    parts = bytearray()
    for token in ids:
        if not 0 <= token < VOCABULARY:
            raise ValueError(f"token id {token} is not between 0 and {VOCABULARY - 1}")
        parts += _word_of(token) if token >= _BYTES else bytes([token])
    return parts.decode(errors="replace")


def generate(seed: int, count: int) -> list[int]:
    """Return ids of words that begin with a space, equal for equal seeds."""
    draw = random.Random(seed)
    return [_BYTES + 2 * draw.randrange(_WORDS) + 1 for _ in range(count)]


def _id_of(word: str) -> int:
    """Number words as a, …, z, aa, …, zzzz; odd ids begin with a space."""
    number = 0
    for letter in word.strip():
        number = number * _LETTERS + ord(letter) - ord("a") + 1
    return _BYTES + 2 * (number - 1) + word.startswith(" ")


def _word_of(token: int) -> bytes:
    number, spaced = divmod(token - _BYTES, 2)
    number += 1
    letters = bytearray()
    while number:
        number, letter = divmod(number - 1, _LETTERS)
        letters.insert(0, ord("a") + letter)
    return (b" " if spaced else b"") + bytes(letters)
