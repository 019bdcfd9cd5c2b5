"""SHA-256 of what a checkpoint holds, read whole by one process: the same however it was sharded."""

import hashlib
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load

from training.checkpoint.hashes import DamagedError, VerifyingReader
from training.checkpoint.index import verified_index
from training.checkpoint.manifest import INDEX_COPY, MANIFEST, Manifest

PARTS = {"params": "model.", "optimizer": "optimizer."}
"""What the names of the parts of a checkpoint begin with."""


def hashes_of(checkpoint: Path) -> dict[str, str]:
    """Of all weights, and of the whole state of the optimizer."""
    whole = _read(checkpoint)
    return {part: _sha256(whole, prefix) for part, prefix in PARTS.items()}


def damage_in(checkpoint: Path) -> str:
    """What reading it finds wrong; empty: nothing."""
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
