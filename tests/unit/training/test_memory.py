"""The plane's arithmetic of memory, against the training program itself."""

import dataclasses

import pytest
import torch
from trainmaster import memory, training_runs

from training.choices import Precision
from training.config import TrainConfig
from training.models.llama import Transformer, rotary_angles
from training.presets import PRESETS, ModelShape


def test_every_preset_of_the_training_program_is_known_and_the_same() -> None:
    for name, shape in PRESETS.items():
        assert dataclasses.asdict(training_runs.PRESETS[name]) == dataclasses.asdict(shape)
        with torch.device("meta"):
            built = Transformer(shape)
        assert training_runs.PRESETS[name].params == sum(one.numel() for one in built.parameters())
    assert TrainConfig().batch_size == training_runs.DEFAULT_BATCH_SIZE
    assert {one.value for one in Precision} <= {one.value for one in training_runs.Precision}


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kv_heads", [2, 8])
def test_a_block_keeps_for_the_backward_pass_what_is_counted(kind: torch.dtype, kv_heads: int) -> None:
    shape = ModelShape(
        layers=2, width=256, heads=8, kv_heads=kv_heads, hidden=704, vocabulary=64, sequence_length=128
    )
    model = Transformer(shape).to(kind)
    own = {one.untyped_storage().data_ptr() for one in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage
        return tensor

    x = model.embedding(torch.zeros(3, 128, dtype=torch.long))
    angles = rotary_angles(128, shape.head_width, x.device)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        for block in model.blocks.values():
            x = block(x, *angles)
    run = training_runs.ModelShape(**dataclasses.asdict(shape))
    counted = 2 * 3 * 128 * memory.kept_per_token(run, kind.itemsize)
    assert sum(storage.nbytes() for storage in kept.values()) == pytest.approx(counted, rel=0.01)
