"""The hash of an item: the same however its bytes arrive, another for any damage."""

import random

import pytest

from training.preemptible.checkpoint.hashes import Hasher, digest_of

_ROW = 8192
_CONTENT = random.Random(1).randbytes(5 * _ROW + 77)


@pytest.mark.parametrize("size", [1, 77, 4096, _ROW, _ROW + 1, 3 * _ROW, len(_CONTENT)])
def test_parts_of_any_size_make_the_same_hash(size: int) -> None:
    hasher = Hasher()
    for start in range(0, len(_CONTENT), size):
        hasher.update(memoryview(_CONTENT)[start : start + size])
    assert hasher.hexdigest() == digest_of(_CONTENT)


def test_any_bit_counts() -> None:
    for place in (0, 7, 8, _ROW - 1, _ROW, 4 * _ROW + 9, len(_CONTENT) - 1):
        for bit in range(8):
            changed = bytearray(_CONTENT)
            changed[place] ^= 1 << bit
            assert digest_of(bytes(changed)) != digest_of(_CONTENT)


def test_the_order_of_rows_and_of_words_counts() -> None:
    rows = _CONTENT[_ROW : 2 * _ROW] + _CONTENT[:_ROW] + _CONTENT[2 * _ROW :]
    words = _CONTENT[8:16] + _CONTENT[:8] + _CONTENT[16:]
    assert len({digest_of(_CONTENT), digest_of(rows), digest_of(words)}) == 3


def test_zeros_of_another_length_are_something_else() -> None:
    assert len({digest_of(bytes(size)) for size in (0, 1, _ROW - 1, _ROW, _ROW + 1, 2 * _ROW)}) == 6


def test_hashes_stay_what_they_are() -> None:
    """Those of another release must still be found right."""
    content = bytes(range(256)) * 100
    assert digest_of(content) == "4cdde71f2104a35b75d03589a2932433b59cd55041a96e0e83152d20b5b1b463"
    assert digest_of(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
