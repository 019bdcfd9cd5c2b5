"""What each step trains on: a function of (seed, step, rank), wherever the tokens lie.

Seeds depend on names alone: the same on every machine, rank and attempt.
"""

import hashlib

_BYTES = 8
_MAXIMUM = 2**63 - 1  # torch.Generator.manual_seed takes a signed 64-bit number


def seed_of(*parts: str | int) -> int:
    """A well-mixed seed for these names and numbers; `hash()` would differ between processes."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_BYTES).digest(), "big") & _MAXIMUM
