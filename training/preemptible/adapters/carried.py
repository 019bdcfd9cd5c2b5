"""Saves the state that an adapter carries beside the library's own checkpoint, one file for each rank.

The file is in the checkpoint's folder, so the mark covers it: a checkpoint whose file is missing or cut is
passed over as torn. A checkpoint from before there was such a file resumes as it did then.
"""

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from training.preemptible.adapters.random_numbers import mixed, put_back, random_numbers, seed_all


def write_carried(folder: Path, content: dict[str, Any], *, numbers: dict[str, Any] | None = None) -> None:
    """Write this rank's file.

    Args:
        folder: The checkpoint's.
        content: Tensors, numbers, texts, and lists and dictionaries of them.
        numbers: Random numbers to resume with; None: those of now.
    """
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({**content, "numbers": numbers or random_numbers()}, folder / _name(rank()))


def read_carried(folder: str | Path | None) -> dict[str, Any] | None:
    """Read this rank's file, or the first rank's where this rank is new; None: the checkpoint has none.

    A new rank gets random numbers of its own, that follow from the first rank's.
    """
    if folder is None:
        return None
    own, first = Path(folder) / _name(rank()), Path(folder) / _name(0)
    if own.is_file():
        return dict(torch.load(own, weights_only=True, map_location="cpu"))
    if not first.is_file():
        return None
    content = dict(torch.load(first, weights_only=True, map_location="cpu"))
    before = random_numbers()
    seed_all(mixed(content["numbers"]["torch"].tolist(), rank()))
    content["numbers"] = {**before, **random_numbers()}
    put_back(before)
    return content


def gradients_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Take the gradients of a step that has had some of its batches."""
    named = module.named_parameters()
    return {name: weight.grad for name, weight in named if weight.grad is not None}


def set_gradients(module: torch.nn.Module, gradients: dict[str, torch.Tensor]) -> None:
    """Set what ``gradients_of`` took."""
    weights = dict(module.named_parameters())
    for name, gradient in gradients.items():
        weights[name].grad = gradient.to(weights[name].device)


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def agreed(value: Any) -> Any:
    """The first rank's value, on every rank."""
    if not dist.is_initialized():
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0)
    return values[0]


def _name(rank: int) -> str:
    return f"carried-{rank}.pt"
