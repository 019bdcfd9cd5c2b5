"""Leaves the whole weights as safetensors, gathered one parameter at a time."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from training.errors import WeightsError
from training.models.hf_names import hf_config, hf_name
from training.presets import ModelShape
from training.weights.ranks import is_first, raise_together
from training.weights.tensor_file import byte_count, write_file

INDEX = "model.safetensors.index.json"
ONE_FILE = "model.safetensors"
_FILE_BYTES = 5 * 10**9
"""More is divided over several files, as transformers does."""
_DRAFT = ".draft-"
_GB = 10**9


def export_weights(
    model: nn.Module, directory: Path, shape: ModelShape, *, file_bytes: int = _FILE_BYTES
) -> None:
    """Every rank calls; the first one writes what ``LlamaForCausalLM.from_pretrained`` loads.

    Numbers stay of the type they are trained in: fp32, or bf16 with precision bf16_pure. A crash leaves
    drafts, whose names nobody loads; the next call replaces them and what an earlier one left.

    Raises:
        WeightsError: On every rank, when the files cannot be written.
    """
    parameters = dict(model.named_parameters())
    wholes = _gathered(parameters)
    failure: WeightsError | None = None
    if is_first():
        try:
            _write(parameters, wholes, directory, shape, file_bytes)
        except WeightsError as error:
            failure = error
        except OSError as error:
            failure = WeightsError(f"cannot write the weights to {directory}: {error}")
    for _ in wholes:  # the other ranks take part, or the first one waits for them; and the other way round
        pass
    raise_together(failure)


def files_of(sizes: Mapping[str, int], *, file_bytes: int) -> list[list[str]]:
    """Names in their order, cut where a file would pass ``file_bytes``."""
    files: list[list[str]] = [[]]
    filled = 0
    for name, size in sizes.items():
        if files[-1] and filled + size > file_bytes:
            files.append([])
            filled = 0
        files[-1].append(name)
        filled += size
    return files


def _gathered(parameters: Mapping[str, nn.Parameter]) -> Iterator[Tensor]:
    """Each parameter whole; on the CPU of the first rank, where it is wanted."""
    for parameter in parameters.values():
        whole = parameter.detach()
        if isinstance(whole, DTensor):
            # It may be offloaded to the host.
            whole = whole.to(whole.device_mesh.device_type)
            assert isinstance(whole, DTensor)
            whole = whole.full_tensor()
        yield whole.cpu() if is_first() else whole


def _write(
    parameters: Mapping[str, nn.Parameter],
    wholes: Iterator[Tensor],
    directory: Path,
    shape: ModelShape,
    file_bytes: int,
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    kinds = {hf_name(name): (one.dtype, tuple(one.shape)) for name, one in parameters.items()}
    sizes = {name: byte_count(*kind) for name, kind in kinds.items()}
    _check_room(directory, sum(sizes.values()))
    files = files_of(sizes, file_bytes=file_bytes)
    places = {_file_name(number, len(files)): names for number, names in enumerate(files, start=1)}
    for place, names in places.items():
        write_file(directory / f"{_DRAFT}{place}", {name: kinds[name] for name in names}, wholes)
    _publish(directory, list(places))
    if len(files) > 1:
        where = {name: place for place, names in places.items() for name in names}
        index = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": where}
        _write_json(directory / INDEX, index)
    dtype = next(iter(parameters.values())).dtype
    _write_json(directory / "config.json", hf_config(shape, dtype=str(dtype).removeprefix("torch.")))


def _check_room(directory: Path, size: int) -> None:
    free = shutil.disk_usage(directory).free
    if size > free:
        raise WeightsError(
            f"the weights need {size / _GB:.1f} GB in {directory}, {free / _GB:.1f} GB are free: "
            "give the job a larger volume (VolumeSizeInGB), or set export=false and keep the checkpoint"
        )


def _file_name(number: int, count: int) -> str:
    return ONE_FILE if count == 1 else f"model-{number:05d}-of-{count:05d}.safetensors"


def _publish(directory: Path, places: list[str]) -> None:
    """Instead of an earlier export, whose files could be more or have other names."""
    (directory / INDEX).unlink(missing_ok=True)
    for earlier in (*directory.glob(ONE_FILE), *directory.glob("model-?????-of-?????.safetensors")):
        earlier.unlink()
    for place in places:
        (directory / f"{_DRAFT}{place}").rename(directory / place)


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    with path.open("w") as file:
        file.write(json.dumps(value, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
