"""SHA-256 of what a checkpoint holds, read whole by one process: the same however it was sharded."""

import hashlib
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load

PARTS = {"params": "model.", "optimizer": "optimizer."}
"""What the names of the parts of a checkpoint begin with."""


def hashes_of(checkpoint: Path) -> dict[str, str]:
    """Of all weights, and of the whole state of the optimizer.

    A checkpoint is pickled in part: only for your own.
    """
    whole = _read(checkpoint)
    return {part: _sha256(whole, prefix) for part, prefix in PARTS.items()}


def _read(checkpoint: Path) -> dict[str, object]:
    reader = FileSystemReader(checkpoint)
    state: dict[str, object] = {
        name: torch.empty(stored.size, dtype=stored.properties.dtype)
        if isinstance(stored, TensorStorageMetadata)
        else None
        for name, stored in reader.read_metadata().state_dict_metadata.items()
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # that is the point
        load(state, storage_reader=reader, no_dist=True)
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
