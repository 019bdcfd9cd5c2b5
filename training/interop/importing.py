"""Load weights in Hugging Face's layout; each rank reads only its own part of each."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from training.config.config_json import read_shape
from training.config.decoder_layout import CONFIG, EMBEDDING, HEAD
from training.config.environment import directory_of
from training.config.vision_shape import Shape
from training.errors import ConfigError, WeightsError
from training.interop import layout_of
from training.interop.exporting import INDEX, ONE_FILE, failing_together, is_first
from training.interop.tensor_file import Entry, read_header, read_part
from training.models.lora import base_parameters
from training.models.transformer import Backbone

_SHOWN = 3
"""Most names of each kind of mistake in a message."""
_ROWS = 2**10
"""Rows of a matrix that are compared at a time."""


def load_weights(model: Backbone, source: str, env: Mapping[str, str], *, new_head: bool = False) -> None:
    """Load weights into a sharded model. Every rank calls. Numbers get the type of the parameters.

    Args:
        model: Model that gets the weights.
        source: A directory, or ``channel:NAME`` of the job.
        env: Environment, which has the directories of the job's channels.
        new_head: Whether the model's head stays as it is, whatever head the weights have.

    Raises:
        ConfigError: There is no such channel.
        WeightsError: On every rank. Files are missing or broken, or not of this model.
    """
    directory, began = directory_of(source, env, option="init_from"), time.perf_counter()
    with failing_together(f"read the weights in {directory}"):
        _load(model, directory, new_head=new_head)
    if is_first():
        print(f"weights loaded from {directory} in {time.perf_counter() - began:.1f} s", flush=True)


def hashed_weights(source: str, env: Mapping[str, str]) -> str:
    """Return one sha256 of all files of the weights: of the lines that `sha256sum *.safetensors` prints.

    Every rank calls, and reads its part of the files.

    Raises:
        ConfigError: There is no such channel.
        WeightsError: On every rank. A file cannot be read.
    """
    directory = directory_of(source, env, option="init_from")
    hashes: dict[str, str] = {}
    rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    with failing_together(f"read the weights in {directory}"):
        for path in sorted(_files(directory))[rank::ranks]:
            with path.open("rb") as file:
                hashes[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    everyone = [hashes] * ranks
    if dist.is_initialized():
        dist.all_gather_object(everyone, hashes)
    lines = sorted((name, digest) for part in everyone for name, digest in part.items())
    return hashlib.sha256("".join(f"{digest}  {name}\n" for name, digest in lines).encode()).hexdigest()


def _load(model: Backbone, directory: Path, *, new_head: bool) -> None:
    _check_config(model.shape, directory, new_head=new_head)
    layout, parameters = layout_of(model.shape), base_parameters(model)
    headers = {path: read_header(path) for path in _files(directory)}
    _refuse_twice(directory, headers)
    there = {name: entry for header in headers.values() for name, entry in header.items()}
    skipped = {name for name in parameters if new_head and layout.is_head(name)}
    loaded = {name: parameter for name, parameter in parameters.items() if name not in skipped}
    wanted = {layout.name(name): parameter for name, parameter in loaded.items()}
    shapes = {name: tuple(parameter.shape) for name, parameter in loaded.items()}
    sizes = {layout.name(name): layout.size(name, shape) for name, shape in shapes.items()}
    left = {name for name in there if not layout.is_weight(name, with_head=not new_head)}
    if model.shape.tied_head and HEAD in there:
        if EMBEDDING in there:
            _refuse_another_head(directory, headers)
            left.add(HEAD)  # a copy, which some programs write all the same
        else:
            wanted[HEAD], sizes[HEAD] = wanted.pop(EMBEDDING), sizes.pop(EMBEDDING)
    _check(directory, {name: entry for name, entry in there.items() if name not in left}, sizes)
    for path, header in headers.items():
        with path.open("rb") as file:
            # In the order of the file: streamed channels are read on, not back and forth.
            for name in sorted(header.keys() & wanted.keys(), key=lambda name: header[name].begin):
                _fill(wanted[name], header[name], file)
    if (unread := sorted(left - {HEAD})) and is_first():
        note = f"{len(unread)} tensors of it are not read ({_some(unread)})"
        print(f"note: {directory}: {note}", flush=True)


def _refuse_twice(directory: Path, headers: Mapping[Path, Mapping[str, Entry]]) -> None:
    names = [name for header in headers.values() for name in header]
    if twice := sorted({name for name, times in Counter(names).items() if times > 1}):
        raise WeightsError(
            f"the weights in {directory} are ambiguous: {_some(twice)} in more than one file; "
            "remove what is left of an older model"
        )


def _refuse_another_head(directory: Path, headers: Mapping[Path, Mapping[str, Entry]]) -> None:
    """Refuse a head that differs from the embedding if the model has one matrix for both.

    The first rank reads both. Such a head would be lost, and the model would compute something else.
    """
    if not is_first():
        return
    places = {name: (path, entry) for path, header in headers.items() for name, entry in header.items()}
    (head_path, head), (embedding_path, embedding) = places[HEAD], places[EMBEDDING]
    is_copy = head.shape == embedding.shape
    with head_path.open("rb") as head_file, embedding_path.open("rb") as embedding_file:
        for row in range(0, head.shape[0] if is_copy else 0, _ROWS):
            sizes = (min(_ROWS, head.shape[0] - row), *head.shape[1:])
            offsets = (row, *[0] * (len(sizes) - 1))
            ours = read_part(head_file, head, offsets=offsets, sizes=sizes)
            theirs = read_part(embedding_file, embedding, offsets=offsets, sizes=sizes)
            is_copy = is_copy and torch.equal(ours.double(), theirs.double())
    if not is_copy:
        raise WeightsError(
            f"the weights in {directory} have a {HEAD} that is not {EMBEDDING}, and tie_word_embeddings says "
            "that the two are one; to train them apart, as transformers loads them, set it to false in "
            "config.json"
        )


def _check_config(shape: Shape, directory: Path, *, new_head: bool) -> None:
    if not (directory / CONFIG).exists():
        return  # then the shapes of the weights are all there is to compare
    try:
        theirs = read_shape(directory, option="init_from")
    except ConfigError as error:
        problems = "; ".join(error.problems)
        raise WeightsError(
            f"the weights in {directory} are of no model that is trained here: {problems}"
        ) from error
    if differences := layout_of(shape).differences(theirs, new_head=new_head):
        problems = "; ".join(differences)
        raise WeightsError(
            f"the weights in {directory} are of another model: {problems}; "
            "to train that one, set model_config to it"
        )


def _files(directory: Path) -> list[Path]:
    if (directory / INDEX).exists() and (directory / ONE_FILE).exists():
        raise WeightsError(
            f"{directory} has {ONE_FILE} and {INDEX}, which are two models: remove the one that is not meant"
        )
    try:
        index = json.loads((directory / INDEX).read_bytes())
        return [directory / name for name in sorted(set(index["weight_map"].values()))]
    except FileNotFoundError:
        pass
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise WeightsError(
            f"{directory / INDEX} is no index of weights, which has the file of each tensor under "
            "weight_map: copy it again"
        ) from error
    if not (directory / ONE_FILE).is_file():
        raise WeightsError(
            f"{directory} has neither {ONE_FILE} nor {INDEX}: init_from takes weights as "
            "transformers' save_pretrained leaves them, unpacked"
        )
    return [directory / ONE_FILE]


def _check(directory: Path, there: Mapping[str, Entry], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse all tensors that do not fit, before anything is loaded."""
    wrong = [
        f"{name} {there[name].shape}, not {shape}"
        for name, shape in wanted.items()
        if name in there and there[name].shape != shape
    ]
    misfits = {
        "missing": sorted(wanted.keys() - there.keys()),
        "unexpected": sorted(there.keys() - wanted.keys()),
        "of another shape": wrong,
    }
    problems = [f"{len(names)} {kind} ({_some(names)})" for kind, names in misfits.items() if names]
    if problems:
        raise WeightsError(f"the weights in {directory} do not fit the model: {'; '.join(problems)}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


@torch.no_grad()
def _fill(parameter: nn.Parameter, entry: Entry, file: BinaryIO) -> None:
    """Copy this rank's part of a parameter from the file."""
    local, offsets = parameter.detach(), (0,) * parameter.ndim
    if isinstance(local, DTensor):
        _, offsets = compute_local_shape_and_global_offset(local.shape, local.device_mesh, local.placements)
        local = local.to_local()
    if local.numel():  # a rank may have none of a short parameter
        entry = replace(entry, shape=entry.shape[: local.ndim])  # what is cut off is 1
        local.copy_(read_part(file, entry, offsets=tuple(offsets), sizes=tuple(local.shape)))
