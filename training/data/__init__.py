"""Data of each step: a function of (seed, step, rank), wherever the tokens are stored.

Seeds depend on names alone, so they are the same on every machine, rank and attempt. Random numbers that must
not depend on the number of ranks are a function of the seed and their place: of one place or a tensor of
them.
"""

import hashlib
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Number = TypeVar("Number", int, "Tensor")
_BYTES = 8
_MAXIMUM = 2**63 - 1  # torch.Generator.manual_seed takes a signed 64-bit number
_WORD = 2**64 - 1


def seed_of(*parts: str | int) -> int:
    """Return a well-mixed seed for these names and numbers; `hash()` would differ between processes."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_BYTES).digest(), "big") & _MAXIMUM


def signed_word(word: int) -> int:
    """Return the same 64 bits as a signed number, as tensors have them."""
    return (word + 2**63 & _WORD) - 2**63


_CONSTANTS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
STEP, _FIRST, _SECOND = (signed_word(constant) for constant in _CONSTANTS)
"""Constants of SplitMix64, whose numbers are ``splitmix`` of a key and multiples of the step."""


def splitmix(value: Number) -> Number:
    """Mix 64 bits well (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014)."""
    word = _WORD if isinstance(value, int) else -1  # tensors wrap at 64 bits by themselves
    value = (value ^ value >> 30 & 2**34 - 1) * _FIRST & word
    value = (value ^ value >> 27 & 2**37 - 1) * _SECOND & word
    return value ^ value >> 31 & 2**33 - 1
