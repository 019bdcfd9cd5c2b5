"""Torch's index of a checkpoint, a pickle: verified before it is decoded, and decoded as data alone."""

import io
import pickle
from pathlib import PurePosixPath
from typing import Any

import torch
from torch.distributed.checkpoint import metadata as torch_index
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import Metadata

from training.checkpoint.hashes import DamagedError, digest_of, has_hashes
from training.checkpoint.manifest import INDEX_COPY, MANIFEST, Manifest


def verified_index(content: bytes, manifest: Manifest) -> Metadata:
    """Torch's index, its hash looked at before a byte of it is decoded.

    Raises:
        DamagedError: It is not the one that was written.
    """
    hashes = manifest.hashes
    if hashes is not None and digest_of(content) != hashes.get(INDEX_COPY):
        raise DamagedError(f"{INDEX_COPY} is damaged: it has another hash than {MANIFEST} says")
    index = read_index(content)
    if hashes is not None and not has_hashes(index):
        raise DamagedError(f"{INDEX_COPY} has no hashes, and {MANIFEST} has")
    return index


def read_index(content: bytes) -> Metadata:
    """Torch's index of a checkpoint, a pickle, from which no code is run.

    Raises:
        DamagedError: It holds something else than an index, which may be code.
    """
    try:
        index = _IndexReader(io.BytesIO(content)).load()
    except DamagedError:
        raise
    except Exception as error:  # a damaged pickle raises whatever it likes
        raise DamagedError(f"the index cannot be read: {type(error).__name__}: {error}") from error
    if not isinstance(index, Metadata):
        raise DamagedError(f"the index is a {type(index).__name__}")
    return index


class _IndexReader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401  pickle's
        if module.partition(".")[0] == "pathlib" and name.endswith("Path"):
            return PurePosixPath
        if module == "torch" and isinstance(found := getattr(torch, name, None), torch.dtype):
            return found
        if (found := _KNOWN.get((module, name))) is None:
            raise DamagedError(f"the index names {module}.{name}, which is not run")
        return found


def _member(of: object, name: str) -> object:
    """Python 3.11 before 3.11.4 pickles a member of an enumeration as an attribute of it."""
    if of is not torch_index._MEM_FORMAT_ENCODING or name not in of.__members__:  # noqa: SLF001  the index has it
        raise DamagedError(f"the index takes {name} of {of!r}, which is not run")
    return of[name]


_KNOWN: dict[tuple[str, str], Any] = {
    ("builtins", "getattr"): _member,
    ("torch", "Size"): torch.Size,
    ("torch.serialization", "_get_layout"): torch.serialization._get_layout,  # noqa: SLF001  the index has it
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): _StorageInfo,
} | {
    (torch_index.__name__, one.__name__): one
    for one in (
        torch_index.BytesStorageMetadata,
        torch_index.ChunkStorageMetadata,
        torch_index.Metadata,
        torch_index.MetadataIndex,
        torch_index.StorageMeta,
        torch_index.TensorProperties,
        torch_index.TensorStorageMetadata,
        torch_index._MEM_FORMAT_ENCODING,  # noqa: SLF001  the index has it
    )
}
"""All that torch's index is made of."""
