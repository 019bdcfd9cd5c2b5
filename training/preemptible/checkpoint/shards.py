"""The bulk of a checkpoint: weights and optimizer state, through torch.distributed.checkpoint.

Every rank calls, and each writes and reads only its own part, whatever the number of ranks was before.
Torch's index of it is a pickle: it is verified before it is decoded, and decoded as data alone.
"""

import io
import pickle
import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint import metadata as torch_index
from torch.distributed.checkpoint._state_dict_stager import StateDictStager
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadPlan, ReadItem
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves

from training.preemptible.checkpoint.hashes import DamagedError, Seconds, digest_of, has_hashes, timed
from training.preemptible.checkpoint.manifest import INDEX_COPY, MANIFEST, Manifest

State = dict[str, Any]
Differences = Mapping[str, tuple[str, str]]
"""(was, now) by the name of the tensor."""


class OtherTensorsError(Exception):
    """The checkpoint holds other tensors than the model and its optimizer."""

    def __init__(self, differences: Differences) -> None:
        super().__init__(differences)  # positional, so that it can be pickled for the other ranks
        self.differences = differences


def state_of(model: nn.Module, optimizer: Optimizer) -> State:
    """Return references to all weights and moments; an optimizer that never stepped gets its moments here.

    Loading into an empty dictionary would load nothing, without an error.
    """
    if not optimizer.state:
        _make_moments(model, optimizer)
    weights, moments = get_state_dict(model, optimizer)
    plain = {
        name: as_stored(weight) if isinstance(weight, DTensor) else weight for name, weight in weights.items()
    }
    return {"model": plain, "optimizer": moments}


def as_stored(weight: DTensor) -> DTensor:
    """Remove what torchao wraps a sharded weight in so that FSDP gathers it in float8.

    The memory is the same.
    """
    inner = getattr(weight.to_local(), "_tensor", None)
    if inner is None:
        return weight
    mesh, placements = weight.device_mesh, weight.placements
    return DTensor.from_local(
        inner, mesh, placements, run_check=False, shape=weight.shape, stride=weight.stride()
    )


def _make_moments(model: nn.Module, optimizer: Optimizer) -> None:
    """Make the optimizer's moments; torch does so by a step with zero gradients, which must not count.

    Bias corrections depend on the count, so a save before the first step would change the training.
    """
    get_state_dict(model, optimizer)
    for moments in optimizer.state.values():
        count = moments.get("step")
        if isinstance(count, torch.Tensor):
            count.zero_()
        elif count is not None:
            moments["step"] = 0


def bytes_of(state: State) -> int:
    """Count the bytes of all tensors over all ranks, each tensor once."""
    tensors = (leaf for leaf in tree_leaves(state) if isinstance(leaf, torch.Tensor))
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def write(state: State, writer: StorageWriter, group: dist.ProcessGroup | None) -> Mapping[Any, Any]:
    """Write the state, and return the places of all its tensors. Raises CheckpointException on all ranks."""
    index = save(state, storage_writer=writer, process_group=group, no_dist=group is None)
    places: Mapping[Any, Any] = index.storage_data
    return places


def read(
    model: nn.Module,
    optimizer: Optimizer,
    reader: StorageReader,
    group: dist.ProcessGroup | None,
    seconds: Seconds,
) -> None:
    """Fill model and optimizer; add to ``seconds`` where the time goes, as the reader does, too.

    Raises:
        CheckpointException: Raised on all ranks; model and optimizer may be half filled.
        OtherTensorsError: Raised on all ranks; model and optimizer are untouched.
    """
    began = time.perf_counter()
    state = state_of(model, optimizer)
    try:
        load(
            state,
            storage_reader=reader,
            planner=_ExactPlanner(),
            process_group=group,
            no_dist=group is None,
        )
    except CheckpointException as error:
        for cause, _ in error.failures.values():
            if isinstance(cause, OtherTensorsError):
                raise cause from error
        raise
    seconds["plan"] = time.perf_counter() - began - sum(seconds.values())
    with timed(seconds, "apply"):
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


class Staging:
    """Copies a state to the CPU, into buffers that are kept: pinned ones where there are GPUs.

    The copy is done when the call returns, so whatever changes later is not in it.
    """

    def __init__(self) -> None:
        self._gpus = torch.cuda.is_available()
        # torch 2.11's DefaultStager closes this one after a copy, and fails at the next
        self._stager = StateDictStager(pin_memory=self._gpus, share_memory=False)

    def copied(self, state: State) -> State:
        """Copy the state to the CPU; this overwrites the copy before."""
        staged = self._stager.stage(state, non_blocking=self._gpus)
        if self._gpus:
            torch.cuda.synchronize()
        assert isinstance(staged, dict)
        return staged


class _ExactPlanner(DefaultLoadPlanner):
    """Wants every tensor of the checkpoint and of the state to be in both, in the same shape and type.

    Options of the optimizer that the checkpoint does not know yet keep the values they have.
    """

    def __init__(self) -> None:
        super().__init__(allow_partial_load=True)

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        were = {
            name: _described(stored.size, stored.properties.dtype)
            for name, stored in self.metadata.state_dict_metadata.items()
            if isinstance(stored, TensorStorageMetadata)
        }
        now = {
            name: _described(value.size(), value.dtype)
            for name, value in self.state_dict.items()
            if isinstance(value, torch.Tensor)
        }
        names = were.keys() | now.keys()
        pairs = {name: (were.get(name, "absent"), now.get(name, "absent")) for name in names}
        differences = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        if differences:
            raise OtherTensorsError(differences)
        return super().create_local_plan()

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Load an option of the optimizer.

        Torch would run code in it, so it is first decoded as plain data.
        """
        try:
            torch.load(value, weights_only=True)
        except pickle.UnpicklingError as error:
            raise DamagedError(f"{read_item.dest_index.fqn} is no plain value, and is not run") from error
        value.seek(0)
        super().load_bytes(read_item, value)


def _described(size: torch.Size, dtype: torch.dtype) -> str:
    return f"{'x'.join(str(length) for length in size) or 'a number'} {str(dtype).removeprefix('torch.')}"


def verified_index(content: bytes, manifest: Manifest) -> Metadata:
    """Read torch's index, after its hash was compared and before a byte of it is decoded.

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
    """Read torch's index of a checkpoint, a pickle, from which no code is run.

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
        if module == "torch" and isinstance(known := getattr(torch, name, None), torch.dtype):
            return known
        if (known := _KNOWN.get((module, name))) is None:
            raise DamagedError(f"the index names {module}.{name}, which is not run")
        return known


def _member(of: object, name: str) -> object:
    """Read a member of an enumeration, which Python before 3.11.4 pickles as an attribute of it."""
    if of is not torch_index._MEM_FORMAT_ENCODING or name not in of.__members__:  # noqa: SLF001  the index has it
        raise DamagedError(f"the index takes {name} of {of!r}, which is not run")
    return of[name]


_KNOWN: dict[tuple[str, str], Any] = {
    ("builtins", "getattr"): _member,
    ("torch", "Size"): torch.Size,
    ("torch.serialization", "_get_layout"): torch.serialization._get_layout,  # noqa: SLF001  the index has it
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): _StorageInfo,
} | {
    (torch_index.__name__, kind.__name__): kind
    for kind in (
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
"""Everything that torch's index is made of."""
