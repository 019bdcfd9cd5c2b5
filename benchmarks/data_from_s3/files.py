"""Writes the files to read: large shards, and the same small samples as objects and in shards."""

import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.training.writer import Layout, Part, ShardWriter
from training.data.index import BLOCK_BYTES, BlockFile, TokenDtype, checksum

LARGE, SMALL, SAMPLES = "large", "small", "samples"
"""Folders: token shards, an object for each sample, the samples in shards."""
DESCRIPTION = "description.json"
_VOCABULARY = 2**16
_SEED = 7
_PART_BYTES = 64 * 2**20
"""Bytes made at a time; a larger shard is a multiple of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    shards: int
    shard_bytes: int
    samples: int
    sample_bytes: int
    samples_a_shard: int

    @property
    def large_bytes(self) -> int:
        return self.shards * self.shard_bytes


FULL = Amount(shards=4, shard_bytes=64 * 2**20, samples=1024, sample_bytes=10_000, samples_a_shard=256)
TWO_GB = Amount(
    shards=1, shard_bytes=30 * 64 * 2**20, samples=256, sample_bytes=1_000_000, samples_a_shard=64
)
QUICK = Amount(shards=2, shard_bytes=2 * 2**20, samples=200, sample_bytes=10_000, samples_a_shard=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files as ``DESCRIPTION`` has them."""

    amount: Amount
    large: tuple[str, ...]
    small: tuple[str, ...]
    samples: tuple[BlockFile, ...]


def written(folder: Path, amount: Amount) -> None:
    """Write the files, the same bytes each time; do nothing if they exist already."""
    if (folder / DESCRIPTION).exists() and described(folder).amount == amount:
        return
    source = random.Random(_SEED)
    for name in (LARGE, SMALL, SAMPLES):
        (folder / name).mkdir(parents=True, exist_ok=True)
    layout = Layout(
        dtype=TokenDtype.UINT16, vocabulary=_VOCABULARY, shard_tokens=amount.shard_bytes // 2, documents=False
    )
    writer = ShardWriter(folder / LARGE, layout)
    part_bytes = min(amount.shard_bytes, _PART_BYTES)
    for _ in range(amount.large_bytes // part_bytes):
        writer.write(Part(tokens=source.randbytes(part_bytes)))
    index = writer.publish()
    names, shards = [], []
    for first in range(0, amount.samples, amount.samples_a_shard):
        samples = [source.randbytes(amount.sample_bytes) for _ in range(amount.samples_a_shard)]
        for number, sample in enumerate(samples, first):
            names.append(f"sample-{number:05d}")
            (folder / SMALL / names[-1]).write_bytes(sample)
        shards.append(_shard(folder / SAMPLES / f"samples-{first:05d}.bin", b"".join(samples)))
    description = {
        "amount": asdict(amount),
        "large": [shard.name for shard in index.shards],
        "small": names,
        "samples": shards,
    }
    (folder / DESCRIPTION).write_text(json.dumps(description))


def _shard(path: Path, content: bytes) -> dict[str, Any]:
    path.write_bytes(content)
    blocks = [checksum(content[at : at + BLOCK_BYTES]) for at in range(0, len(content), BLOCK_BYTES)]
    return {"name": path.name, "bytes": len(content), "sha256": "", "blocks": blocks}


def described(folder: Path) -> Files:
    description = json.loads((folder / DESCRIPTION).read_bytes())
    return Files(
        amount=Amount(**description["amount"]),
        large=tuple(description["large"]),
        small=tuple(description["small"]),
        samples=tuple(
            BlockFile(**{**sample_file, "blocks": tuple(sample_file["blocks"])})
            for sample_file in description["samples"]
        ),
    )
