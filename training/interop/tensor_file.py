"""Read and write a safetensors file: eight bytes of length, a JSON header, then the tensors' bytes.

Source: the format's description, github.com/huggingface/safetensors.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from training.errors import WeightsError

_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LENGTH_BYTES = 8
_LONGEST_HEADER = 100_000_000
"""Most bytes of a header; the library refuses longer ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Type, shape and place of a tensor in a file."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    """Offset of its bytes from the start of the file."""


def byte_count(dtype: torch.dtype, shape: Iterable[int]) -> int:
    count = dtype.itemsize
    for length in shape:
        count *= length
    return count


def write_file(
    path: Path, shapes: Mapping[str, tuple[torch.dtype, tuple[int, ...]]], tensors: Iterable[Tensor]
) -> None:
    """Write the tensors, which come in the order of ``shapes``, one at a time."""
    with path.open("wb") as file:
        file.write(_header(shapes))
        # Not strict: what comes after the last one belongs to the next file.
        for _, tensor in zip(shapes, tensors, strict=False):
            file.write(tensor.contiguous().view(torch.uint8).numpy().data)
        file.flush()
        os.fsync(file.fileno())


def read_header(path: Path) -> dict[str, Entry]:
    """Return the tensors of a file.

    Raises:
        WeightsError: It is not such a file, is cut short, or has types that are not read here.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        start = _LENGTH_BYTES + length
        if not 0 < length <= min(_LONGEST_HEADER, size):
            raise WeightsError(f"{path} is not a safetensors file, or cut short")
        try:
            header = json.loads(file.read(length))
            header.pop("__metadata__", None)
            entries = {name: _entry(path, name, described, start) for name, described in header.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WeightsError(f"{path} is not a safetensors file, or cut short") from error
    ends = (entry.begin + byte_count(entry.dtype, entry.shape) for entry in entries.values())
    end = max(ends, default=start)
    if size < end:
        raise WeightsError(f"{path} has {size} bytes of {end}: copy it again")
    return entries


def read_part(file: BinaryIO, entry: Entry, *, offsets: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    """Return the box of a tensor that begins at ``offsets``; only the rows that it touches are read.

    It is read, not mapped into memory: a channel in FastFile mode is good at reading on.

    Args:
        file: The open file.
        entry: The tensor.
        offsets: First place in each dimension.
        sizes: Length in each dimension.
    """
    row = byte_count(entry.dtype, entry.shape[1:])
    buffer = bytearray(row * sizes[0])
    file.seek(entry.begin + row * offsets[0])
    if file.readinto(buffer) != len(buffer):  # type: ignore[attr-defined]
        raise WeightsError(f"{file.name} ends before its header says: copy it again")
    rows = torch.frombuffer(buffer, dtype=entry.dtype).view(sizes[0], *entry.shape[1:])
    return rows[tuple(slice(at, at + size) for at, size in zip((0, *offsets[1:]), sizes, strict=True))]


def _header(shapes: Mapping[str, tuple[torch.dtype, tuple[int, ...]]]) -> bytes:
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}  # transformers wants it said
    at = 0
    for name, (dtype, shape) in shapes.items():
        end = at + byte_count(dtype, shape)
        entries[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the numbers begin aligned
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def _entry(path: Path, name: str, described: Mapping[str, Any], start: int) -> Entry:
    kind, (begin, end) = described["dtype"], described["data_offsets"]
    if kind not in _DTYPES:
        raise WeightsError(f"{path}: {name} is {kind}; only {', '.join(_DTYPES)} are read")
    entry = Entry(dtype=_DTYPES[kind], shape=tuple(described["shape"]), begin=start + begin)
    if end - begin != byte_count(entry.dtype, entry.shape):
        raise ValueError(name)
    return entry
