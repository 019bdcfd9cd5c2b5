"""Weights, gradients and optimizer in bf16, with Kahan's sum and without."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.tensor import DTensor
from torch.optim import AdamW, Optimizer

from tests.integration.training.learning import sha256, sharded, trained
from tests.integration.training.worlds import in_world
from training.config import TrainConfig
from training.config.choices import Precision
from training.models.transformer import Transformer
from training.optim import make_optimizer
from training.ranks.world import World

_PURE = TrainConfig(precision=Precision.BF16_PURE, lr=3e-4)
_STEPS = 40


def _final_losses(world: World) -> tuple[float, float, float]:
    """Means of the last five steps: in fp32, in bf16 without and with the rest of the sum."""
    plain = sharded(_PURE, world)
    groups = make_optimizer(plain, _PURE).param_groups
    runs = (
        trained(replace(_PURE, precision=Precision.FP32), world, steps=_STEPS),
        trained(_PURE, world, steps=_STEPS, model=plain, optimizer=AdamW(groups, fused=True)),
        trained(_PURE, world, steps=_STEPS),
    )
    fp32, rounded, compensated = (sum(losses[-5:]) / 5 for _, _, losses in runs)
    return fp32, rounded, compensated


def test_T11_the_compensated_sum_closes_most_of_the_gap_between_bf16_and_fp32() -> None:
    fp32, rounded, compensated = in_world(1, _final_losses)[0]
    gap = rounded - fp32
    assert gap > 0.01
    assert rounded - compensated >= 0.7 * gap


def _saved(world: World, place: Path) -> str:
    model, optimizer, _ = trained(_PURE, world, steps=3)
    weights, state = get_state_dict(model, optimizer)
    save({"model": weights, "optimizer": state}, checkpoint_id=place)
    return _hash(model, optimizer)


def _loaded(world: World, place: Path) -> str:
    model = sharded(replace(_PURE, seed=1), world)
    optimizer = make_optimizer(model, _PURE)
    weights, state = get_state_dict(model, optimizer)
    found: dict[str, Any] = {"model": weights, "optimizer": state}
    load(found, checkpoint_id=place)
    set_state_dict(model, optimizer, model_state_dict=found["model"], optim_state_dict=found["optimizer"])
    return _hash(model, optimizer)


def _hash(model: Transformer, optimizer: Optimizer) -> str:
    """Of weights, moments and rests, whole."""
    tensors: list[torch.Tensor] = []
    for one in model.parameters():
        state = optimizer.state[one]
        tensors += [one, state["exp_avg"], state["exp_avg_sq"], state["compensation"], state["step"]]
    assert tensors[3].dtype is torch.bfloat16
    assert tensors[3].count_nonzero() > 0
    return sha256([one.full_tensor() if isinstance(one, DTensor) else one for one in tensors])


def test_a_checkpoint_brings_the_rest_of_the_sum_to_any_number_of_ranks(tmp_path: Path) -> None:
    (hash_of_two,) = set(in_world(2, _saved, tmp_path))
    assert set(in_world(4, _loaded, tmp_path)) == {hash_of_two}
