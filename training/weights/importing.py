"""Starts a training from weights in Hugging Face's Llama layout; a rank reads its own part of each alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from training.config import directory_of
from training.errors import WeightsError
from training.models.hf_names import differences, hf_name, is_weight
from training.models.llama import Transformer
from training.presets import ModelShape
from training.weights.exporting import INDEX, ONE_FILE
from training.weights.ranks import is_first, raise_together
from training.weights.tensor_file import Entry, read_header, read_part

_SHOWN = 3
"""A message names so many of each kind of mistake."""


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
    _check(directory, there, {name: tuple(one.shape) for name, one in wanted.items()})
    for path, header in headers.items():
        with path.open("rb") as file:
            # In the order of the file: streamed channels are read on, not back and forth.
            for name in sorted(header.keys() & wanted.keys(), key=lambda name: header[name].begin):
                _fill(wanted[name], header[name], file)


def _check_config(shape: ModelShape, directory: Path) -> None:
    try:
        config = json.loads((directory / "config.json").read_bytes())
    except FileNotFoundError:
        return  # then the shapes of the weights are all there is to compare
    except ValueError as error:
        raise WeightsError(f"{directory / 'config.json'} cannot be read: {error}") from error
    if found := differences(shape, config):
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
        raise WeightsError(f"the weights in {directory} do not fit the preset: {'; '.join(problems)}")


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
