"""Spoils checkpoints as disks, copies and people do, and looks whether reading finds it out.

By SHA-256 of what one holds, read whole by one process: the same however it was sharded.
"""

import hashlib
import random
import shutil
import warnings
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load

from training.preemptible.checkpoint import LocalStore
from training.preemptible.checkpoint.hashes import DamagedError, VerifyingReader
from training.preemptible.checkpoint.manifest import INDEX_COPY, MANIFEST, Manifest, Whole, findings, view_of
from training.preemptible.checkpoint.shards import verified_index

_PARTS = {"params": "model.", "optimizer": "optimizer."}
"""Beginnings of the names of a checkpoint's parts."""
_GARBAGE_BYTES = 4096


def hashes_of(checkpoint: Path) -> dict[str, str]:
    """Return the hashes of all weights, and of the whole state of the optimizer."""
    whole = _read(checkpoint)
    return {part: _sha256(whole, prefix) for part, prefix in _PARTS.items()}


def _read(checkpoint: Path) -> dict[str, object]:
    manifest = Manifest.parsed((checkpoint / MANIFEST).read_bytes())
    index = verified_index((checkpoint / INDEX_COPY).read_bytes(), manifest)
    state: dict[str, object] = {
        name: torch.empty(stored.size, dtype=stored.properties.dtype)
        if isinstance(stored, TensorStorageMetadata)
        else None
        for name, stored in index.state_dict_metadata.items()
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # that is the point
        load(state, storage_reader=VerifyingReader(checkpoint, index=index, seconds={}), no_dist=True)
    return state


def _sha256(whole: Mapping[str, object], prefix: str) -> str:
    """Names, types, shapes and bytes, in the order of the names."""
    digest = hashlib.sha256()
    names = sorted(name for name in whole if name.startswith(prefix))
    assert names, f"nothing in the checkpoint begins with {prefix!r}"
    for name in names:
        value = whole[name]
        if isinstance(value, Tensor):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
            digest.update(value.contiguous().view(-1).view(torch.uint8).numpy().data)
        else:
            digest.update(f"{name} {value!r}\n".encode())
    return digest.hexdigest()


class Spoiling(StrEnum):
    FLIP = "flip"
    """One bit of a shard."""
    GARBAGE = "garbage"
    """4 KiB of random bytes over as many."""
    SWAP = "swap"
    """Two shards exchanged; of a single one two parts."""
    CUT = "cut"
    """A shard ends early."""


def trials(checkpoint: Path, number: int, source: random.Random) -> list[dict[str, str]]:
    """Spoil a copy of it this many times, each way in turn, and read each as a resume does.

    Of each ``what`` was done, and what was ``found``; empty: it was read as if nothing had happened.
    """
    made = []
    for count in range(number):
        with TemporaryDirectory(prefix="trainmaster-spoiled-") as place:
            copy = Path(shutil.copytree(checkpoint, Path(place) / checkpoint.name))
            what = spoil(copy, list(Spoiling)[count % len(Spoiling)], source)
            made.append({"what": what, "found": _reading(copy)})
    return made


def _reading(checkpoint: Path) -> str:
    """Return what reading finds wrong; empty if nothing."""
    (seen,) = findings({"here": view_of(LocalStore(checkpoint.parent))})
    if not isinstance(seen, Whole):
        return seen.reason
    try:
        _read(checkpoint)
    except DamagedError as error:
        return str(error)
    except CheckpointException as error:
        causes = [cause for cause, _ in error.failures.values()]
        if not all(isinstance(cause, DamagedError) for cause in causes):
            raise
        return "; ".join(map(str, causes))
    return ""


def spoil_newest(checkpoints: Path, source: random.Random) -> str | None:
    """Spoil the newest checkpoint; None if the job has no other one to fall back on."""
    whole = sorted(path.parent for path in checkpoints.glob(f"step-*/{MANIFEST}"))
    if len(whole) < 2:  # noqa: PLR2004  it and the one before
        return None
    how = source.choice(list(Spoiling))
    return f"{whole[-1].name}: {spoil(whole[-1], how, source)}"


def spoil(checkpoint: Path, how: Spoiling, source: random.Random) -> str:
    """Spoil its shards; return what was done, for a report."""
    shards = sorted(checkpoint.glob("*.distcp"))
    before = [shard.read_bytes() for shard in shards]
    damage = _spoil(shards, how, source)
    while [shard.read_bytes() for shard in shards] == before:  # e.g. zeros over zeros
        damage = _spoil(shards, how, source)
    return f"{how}: {damage}"


def _spoil(shards: list[Path], how: Spoiling, source: random.Random) -> str:
    shard = source.choice(shards)
    content = bytearray(shard.read_bytes())
    match how:
        case Spoiling.FLIP:
            place, bit = source.randrange(len(content)), source.randrange(8)
            content[place] ^= 1 << bit
            damage = f"bit {bit} of byte {place} of {shard.name}"
        case Spoiling.GARBAGE:
            place = source.randrange(max(1, len(content) - _GARBAGE_BYTES))
            part = content[place : place + _GARBAGE_BYTES]
            content[place : place + len(part)] = source.randbytes(len(part))
            damage = f"{len(part)} bytes from {place} on of {shard.name}"
        case Spoiling.SWAP if len(shards) > 1:
            return _swap_files(*source.sample(shards, 2))
        case Spoiling.SWAP:
            damage = f"{_swap_parts(content, source)} of {shard.name}"
        case Spoiling.CUT:
            del content[source.randrange(len(content)) :]
            damage = f"{shard.name} after {len(content)} bytes"
    shard.write_bytes(content)
    return damage


def _swap_files(file: Path, other: Path) -> str:
    first, second = file.read_bytes(), other.read_bytes()
    file.write_bytes(second)
    other.write_bytes(first)
    return f"{file.name} and {other.name}"


def _swap_parts(content: bytearray, source: random.Random) -> str:
    half = len(content) // 2
    size = min(_GARBAGE_BYTES, half)
    first, second = source.randrange(half - size + 1), half + source.randrange(half - size + 1)
    part, other = content[first : first + size], content[second : second + size]
    content[first : first + size], content[second : second + size] = other, part
    return f"{size} bytes from {first} on and from {second} on"
