"""Weights leave as safetensors in Hugging Face's layout, and training may start from such.

The format is written and read here, not by the library of its name: it is a small header before plain
numbers, a job needs no package for it, and no more than one parameter is ever in the host's memory.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from training.config import directory_of
from training.errors import ConfigError, WeightsError
from training.interop.config_json import read_shape
from training.interop.layout import CONFIG, HEAD, config_of, differences, hf_name, is_weight
from training.interop.tensor_file import Entry, byte_count, read_header, read_part, write_file
from training.model import Transformer
from training.model_config import ModelShape

INDEX = "model.safetensors.index.json"
ONE_FILE = "model.safetensors"
_FILE_BYTES = 5 * 10**9
"""More is divided over several files, as transformers does."""
_DRAFT = ".draft-"
_GB = 10**9
_SHOWN = 3
"""A message names so many of each kind of mistake."""


def export_weights(
    model: nn.Module, directory: Path, shape: ModelShape, *, file_bytes: int = _FILE_BYTES
) -> None:
    """Every rank calls; the first one writes what ``AutoModelForCausalLM.from_pretrained`` loads.

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
    _write_json(directory / CONFIG, config_of(shape, dtype=str(dtype).removeprefix("torch.")))


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


def load_weights(model: Transformer, source: str, env: Mapping[str, str]) -> None:
    """Every rank calls, after the model was sharded. Numbers are converted to the type they are trained in.

    Args:
        model: Gets the weights.
        source: A directory, or ``channel:NAME`` of the job.
        env: Where channels are named.

    Raises:
        ConfigError: There is no such channel.
        WeightsError: On every rank. Files are missing or broken, or not of this model.
    """
    directory = directory_of(source, env, option="init_from")
    failure: WeightsError | None = None
    try:
        _load(model, directory)
    except WeightsError as error:
        failure = error
    except OSError as error:
        failure = WeightsError(f"cannot read the weights in {directory}: {error}")
    raise_together(failure)
    if is_first():
        print(f"weights loaded from {directory}", flush=True)


def _load(model: Transformer, directory: Path) -> None:
    _check_config(model.shape, directory)
    headers = {path: read_header(path) for path in _files(directory)}
    there = {name: one for header in headers.values() for name, one in header.items() if is_weight(name)}
    wanted = {hf_name(name): one for name, one in model.named_parameters()}
    if model.shape.tied_head:
        there.pop(HEAD, None)  # some programs write it all the same
    _check(directory, there, {name: tuple(one.shape) for name, one in wanted.items()})
    for path, header in headers.items():
        with path.open("rb") as file:
            # In the order of the file: streamed channels are read on, not back and forth.
            for name in sorted(header.keys() & wanted.keys(), key=lambda name: header[name].begin):
                _fill(wanted[name], header[name], file)


def _check_config(shape: ModelShape, directory: Path) -> None:
    if not (directory / CONFIG).exists():
        return  # then the shapes of the weights are all there is to compare
    try:
        theirs = read_shape(directory, option="init_from")
    except ConfigError as error:
        told = "; ".join(error.problems)
        raise WeightsError(
            f"the weights in {directory} are of no model that is trained here: {told}"
        ) from error
    if found := differences(theirs, shape):
        raise WeightsError(f"the weights in {directory} are of another model: {'; '.join(found)}")


def _files(directory: Path) -> list[Path]:
    try:
        index = json.loads((directory / INDEX).read_bytes())
        return [directory / name for name in sorted(set(index["weight_map"].values()))]
    except FileNotFoundError:
        pass
    except (ValueError, KeyError, AttributeError) as error:
        raise WeightsError(f"{directory / INDEX} cannot be read: {error!r}") from error
    if not (directory / ONE_FILE).is_file():
        raise WeightsError(
            f"{directory} has neither {ONE_FILE} nor {INDEX}: init_from takes weights as "
            "transformers' save_pretrained leaves them, unpacked"
        )
    return [directory / ONE_FILE]


def _check(directory: Path, there: Mapping[str, Entry], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Everything that does not fit, before anything is loaded."""
    wrong = [
        f"{name} {there[name].shape}, not {shape}"
        for name, shape in wanted.items()
        if name in there and there[name].shape != shape
    ]
    found = {
        "missing": sorted(wanted.keys() - there.keys()),
        "unexpected": sorted(there.keys() - wanted.keys()),
        "of another shape": wrong,
    }
    problems = [f"{len(names)} {kind} ({_some(names)})" for kind, names in found.items() if names]
    if problems:
        raise WeightsError(f"the weights in {directory} do not fit the model: {'; '.join(problems)}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


@torch.no_grad()
def _fill(parameter: nn.Parameter, entry: Entry, file: BinaryIO) -> None:
    """This rank's part of a parameter."""
    local, offsets = parameter.detach(), (0,) * parameter.ndim
    if isinstance(local, DTensor):
        _, offsets = compute_local_shape_and_global_offset(local.shape, local.device_mesh, local.placements)
        local = local.to_local()
    if local.numel():  # a rank may have none of a short parameter
        local.copy_(read_part(file, entry, offsets=tuple(offsets), sizes=tuple(local.shape)))


def is_first() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def raise_together(failure: WeightsError | None) -> None:
    """Every rank calls, and raises what the first one of those that failed has to say."""
    messages = [str(failure) if failure else None]
    if dist.is_initialized():
        messages = [None] * dist.get_world_size()
        dist.all_gather_object(messages, str(failure) if failure else None)
    for message in messages:
        if message is not None:
            raise WeightsError(message) from failure
