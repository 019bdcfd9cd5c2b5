"""Write the weights as safetensors in Hugging Face's layout, gathered one parameter at a time.

The format is written here, not by the library of its name: it is a small header before plain numbers, a job
needs no package for it, and no more than one parameter is ever in the host's memory.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from training.config.decoder_layout import ADAPTER_CONFIG, ADAPTERS, adapter_config, peft_name
from training.config.decoder_shape import Lora
from training.config.vision_shape import Shape
from training.errors import WeightsError
from training.interop import layout_of
from training.interop.tensor_file import byte_count, write_file
from training.models.lora import adapted_layers, base_parameters, merged, trained_part
from training.preemptible.checkpoint.shards import as_stored

INDEX = "model.safetensors.index.json"
ONE_FILE = "model.safetensors"
_FILE_BYTES = 5 * 10**9
"""Most bytes of a file; larger models are divided over several files, as by transformers."""
_DRAFT = ".draft-"
_GB = 10**9


def export_weights(model: nn.Module, directory: Path, shape: Shape, *, file_bytes: int = _FILE_BYTES) -> None:
    """Write what transformers' ``from_pretrained`` loads. Every rank calls; the first one writes.

    Adapters are merged into their matrices. Numbers keep their type: fp32, or bf16 with precision bf16_pure
    and where the model is frozen. A crash leaves drafts, whose names nobody loads; the next call replaces
    them and the files of an earlier call.

    Args:
        model: The trained model, sharded or not.
        directory: Folder that gets the files.
        shape: Shape of the model.
        file_bytes: Most bytes of a file.

    Raises:
        WeightsError: On every rank, if the files cannot be written.
    """
    parameters = base_parameters(model)
    _written_by_the_first(
        _merged(model, parameters),
        lambda tensors: _write(parameters, tensors, directory, shape, file_bytes),
        directory,
    )


def export_adapters(model: nn.Module, directory: Path, lora: Lora, *, base: str) -> None:
    """Write what PEFT's ``PeftModel.from_pretrained`` loads. Every rank calls; the first one writes.

    Args:
        model: The model with its adapters.
        directory: Folder that gets adapter_model.safetensors and adapter_config.json.
        lora: Rank, scale and targets of the adapters.
        base: Name or path of the weights that they belong to.

    Raises:
        WeightsError: On every rank, if the files cannot be written.
    """
    parameters = dict(trained_part(model).named_parameters())
    kinds = {
        peft_name(name): (parameter.dtype, tuple(parameter.shape)) for name, parameter in parameters.items()
    }

    def write(tensors: Iterator[Tensor]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        write_file(directory / f"{_DRAFT}{ADAPTERS}", kinds, tensors)
        (directory / f"{_DRAFT}{ADAPTERS}").rename(directory / ADAPTERS)
        _write_json(directory / ADAPTER_CONFIG, adapter_config(lora, base=base))

    _written_by_the_first((_gathered(parameter) for parameter in parameters.values()), write, directory)


def _written_by_the_first(
    tensors: Iterator[Tensor], write: Callable[[Iterator[Tensor]], None], directory: Path
) -> None:
    """Let the first rank write, while all ranks gather each tensor together."""
    with failing_together(f"write the weights to {directory}"):
        try:
            if is_first():
                write(tensors)
        finally:
            for _ in tensors:  # the other ranks take part, or the first one waits for them; and they for it
                pass


def files_of(sizes: Mapping[str, int], *, file_bytes: int) -> list[list[str]]:
    """Divide names among files, in their order; a file passes ``file_bytes`` only for a single tensor."""
    files: list[list[str]] = [[]]
    filled = 0
    for name, size in sizes.items():
        if files[-1] and filled + size > file_bytes:
            files.append([])
            filled = 0
        files[-1].append(name)
        filled += size
    return files


def _merged(model: nn.Module, parameters: Mapping[str, nn.Parameter]) -> Iterator[Tensor]:
    """Yield each parameter whole, with its adapter merged in."""
    adapters = {f"{name}.weight": layer for name, layer in adapted_layers(model)}
    for name, parameter in parameters.items():
        whole = _gathered(parameter)
        if layer := adapters.get(name):
            down, up = _gathered(layer.lora_a), _gathered(layer.lora_b)
            whole = merged(whole, down, up, scale=layer.scale) if is_first() else whole
        yield whole


def _gathered(parameter: nn.Parameter) -> Tensor:
    """Gather a parameter; on the first rank, which needs it, it comes to the CPU."""
    whole = parameter.detach()
    if isinstance(whole, DTensor):
        # It may be offloaded to the host.
        whole = as_stored(whole).to(whole.device_mesh.device_type)
        assert isinstance(whole, DTensor)
        whole = whole.full_tensor()
    return whole.cpu() if is_first() else whole


def _write(
    parameters: Mapping[str, nn.Parameter],
    wholes: Iterator[Tensor],
    directory: Path,
    shape: Shape,
    file_bytes: int,
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    layout = layout_of(shape)
    kinds = {
        layout.name(name): (parameter.dtype, layout.size(name, tuple(parameter.shape)))
        for name, parameter in parameters.items()
    }
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
    for name, content in layout.files(str(dtype).removeprefix("torch.")).items():
        _write_json(directory / name, content)


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
    """Replace an earlier export, whose files could be more or have other names."""
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


def is_first() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


@contextmanager
def failing_together(what: str) -> Iterator[None]:
    """Raise on every rank the error of any; of several, that of the first rank among them.

    Args:
        what: Work that cannot be done if the operating system fails, for the message.

    Raises:
        WeightsError: On every rank.
    """
    failure: WeightsError | None = None
    try:
        yield
    except WeightsError as error:
        failure = error
    except OSError as error:
        failure = WeightsError(f"cannot {what}: {error}")
    messages = [str(failure) if failure else None]
    if dist.is_initialized():
        messages = [None] * dist.get_world_size()
        dist.all_gather_object(messages, str(failure) if failure else None)
    for message in messages:
        if message is not None:
            raise WeightsError(message) from failure
