"""Chance that repeats: a stream of numbers that depends on its seed and on nothing else."""

from hashlib import blake2b

_MASK = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


class Chance:
    """Uniform draws. SplitMix64; source: Steele, Lea and Flood (2014), "Fast splittable generators"."""

    def __init__(self, seed: str) -> None:
        self._state = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest())

    def draw(self) -> float:
        """In [0, 1)."""
        self._state = (self._state + _STEP) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) / 2**53
