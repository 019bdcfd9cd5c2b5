"""What a checkpoint says about itself: ``manifest.json``, written last.

It lists the files of all hosts with their sizes, so a copy that lost one on the way is found out, and it has
the hash of the index, which has those of all else.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

MANIFEST = "manifest.json"
ALGORITHM = "multilinear64-sha256"
"""Of the hashes: ``hashes.py`` says what it is."""
INDEX, INDEX_COPY = ".metadata", "metadata"
"""Torch's index of the shards, a pickle, and its copy; the manifest lists the copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    step: int
    world_size: int
    hosts: int
    """With disks of their own, or machines where the store is shared."""
    guard: Mapping[str, str]
    """Options it was trained with that another attempt may not change."""
    carried: Mapping[str, float]
    """What the caller wants back beside weights and optimizer, e.g. seconds of useful work."""
    files: Mapping[str, int]
    """Bytes by name, of all hosts, without this file."""
    seconds: float
    """From the first file to this one."""
    saved_at: str
    """ISO 8601, UTC."""
    hashes: Mapping[str, str] | None = None
    """``algorithm``, and by it the hash of ``metadata``; None: written before hashes were taken."""

    @property
    def size(self) -> int:
        """Bytes, of all files."""
        return sum(self.files.values())

    @property
    def bytes_per_second(self) -> float:
        """Of one host."""
        return self.size / self.hosts / max(self.seconds, 1e-3)

    def text(self) -> bytes:
        return json.dumps({**asdict(self), "bytes": self.size}, indent=1).encode()

    @classmethod
    def parsed(cls, text: bytes) -> Self:
        """Raises ValueError for half a file, KeyError for one that is not of this program."""
        found = json.loads(text)
        if not isinstance(found, dict):
            raise KeyError("step")
        known = {"hashes": None, **found}
        return cls(**{name: known[name] for name in cls.__slots__})


def sizes_of(storage_data: Mapping[Any, Any]) -> dict[str, int]:
    """Bytes of each file of shards, of all ranks, from the index that torch made of them.

    A file is its items, one after the other, so it ends where the last one ends.
    """
    sizes: dict[str, int] = {}
    for item in storage_data.values():
        ends_at = item.offset + item.length
        sizes[item.relative_path] = max(sizes.get(item.relative_path, 0), ends_at)
    return dict(sorted(sizes.items()))
