"""Spoils checkpoints as disks, copies and people do, and looks whether loading finds it out."""

import random
from enum import StrEnum
from pathlib import Path

GARBAGE_BYTES = 4096
_SHARDS = "*.distcp"


class Spoiling(StrEnum):
    FLIP = "flip"
    """One bit of a shard."""
    GARBAGE = "garbage"
    """4 KiB of random bytes over as many."""
    SWAP = "swap"
    """Two shards exchanged; of a single one two parts."""
    CUT = "cut"
    """A shard ends early."""


def spoil(checkpoint: Path, how: Spoiling, source: random.Random) -> str:
    """Change its shards so; what was done, for a report."""
    shards = sorted(checkpoint.glob(_SHARDS))
    shard = source.choice(shards)
    content = bytearray(shard.read_bytes())
    match how:
        case Spoiling.FLIP:
            place, bit = source.randrange(len(content)), source.randrange(8)
            content[place] ^= 1 << bit
            told = f"bit {bit} of byte {place} of {shard.name}"
        case Spoiling.GARBAGE:
            place = source.randrange(max(1, len(content) - GARBAGE_BYTES))
            part = content[place : place + GARBAGE_BYTES]
            content[place : place + len(part)] = source.randbytes(len(part))
            told = f"{len(part)} bytes from {place} on of {shard.name}"
        case Spoiling.SWAP if len(shards) > 1:
            return _swap_files(*source.sample(shards, 2))
        case Spoiling.SWAP:
            told = f"{_swap_parts(content, source)} of {shard.name}"
        case Spoiling.CUT:
            del content[source.randrange(len(content)) :]
            told = f"{shard.name} after {len(content)} bytes"
    shard.write_bytes(content)
    return f"{how}: {told}"


def _swap_files(one: Path, other: Path) -> str:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return f"{Spoiling.SWAP}: {one.name} and {other.name}"


def _swap_parts(content: bytearray, source: random.Random) -> str:
    half = len(content) // 2
    size = min(GARBAGE_BYTES, half)
    first, second = source.randrange(half - size + 1), half + source.randrange(half - size + 1)
    one, other = content[first : first + size], content[second : second + size]
    content[first : first + size], content[second : second + size] = other, one
    return f"{size} bytes from {first} on and from {second} on"
