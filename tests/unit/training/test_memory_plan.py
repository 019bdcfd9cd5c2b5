"""The plane's arithmetic of memory, against the training program itself."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from trainmaster.core.memory import footprint, program_shapes, training_runs
from trainmaster.core.memory.vision_shapes import EVERY_PRESET

from tools.training.plan import as_planned
from training.config import TrainConfig
from training.config.choices import ActivationCheckpointing, Compile
from training.config.decoder_shape import PRESETS, ModelShape
from training.config.vision_shape import VISION_PRESETS, Pooling, Shape, VisionShape
from training.families import model_of
from training.models.transformer import Transformer, rotary_angles
from training.parallel.sharding import prepare

_QWEN = ModelShape(
    layers=4, width=256, heads=8, kv_heads=2, hidden=704, vocabulary=64, sequence_length=128, head_width=48,
    head_norms=True, tied_head=True,
)  # fmt: skip
_BIASED = dataclasses.replace(
    _QWEN, qkv_bias=True, output_bias=True, feed_forward_bias=True, head_norms=False
)
_IMAGES = VisionShape(layers=4, width=256, heads=8, hidden=704, patch=8, image_size=64, classes=10)
_LIKE_22B = dataclasses.replace(
    _IMAGES, pooling=Pooling.MEAN, qkv_bias=False, norm_bias=False, head_norms=True, is_parallel=True
)
_OTHERS = (_QWEN, _BIASED, _IMAGES, _LIKE_22B, dataclasses.replace(_LIKE_22B, masked=0.5))


def test_every_preset_of_the_training_program_is_known_and_the_same() -> None:
    presets: dict[str, Shape] = {**PRESETS, **VISION_PRESETS}
    assert {name: as_planned(shape) for name, shape in presets.items()} == EVERY_PRESET
    for shape in (*presets.values(), *_OTHERS):
        with torch.device("meta"):
            built = model_of(shape)
        assert as_planned(shape).params == sum(one.numel() for one in built.parameters())
    assert TrainConfig().batch_size == training_runs.DEFAULT_BATCH_SIZE


class Living(TorchDispatchMode):
    """Every storage that an operation makes, for as long as somebody holds it; weights are not made."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        super().__init__()
        self._weights = {StorageWeakRef(one.untyped_storage()) for one in weights}
        self._made: dict[StorageWeakRef, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple) else (made,):
            if isinstance(one, Tensor):
                self._made[StorageWeakRef(one.untyped_storage())] = one.untyped_storage().nbytes()
        return made

    def bytes(self) -> int:
        made = self._made.items()
        return sum(size for storage, size in made if not storage.expired() and storage not in self._weights)


SEQUENCES, LENGTH, WIDTH = 3, 128, 256
_PLAIN = dataclasses.replace(_QWEN, head_width=32, head_norms=False, tied_head=False)


def kept(
    kind: torch.dtype, shape: ModelShape, mode: ActivationCheckpointing
) -> tuple[int, training_runs.Run]:
    """Bytes that four blocks keep for the backward pass, as they are and as the plane sees them."""
    model = Transformer(shape).to(kind)
    prepare(model.blocks.values(), recomputed=mode, compiled=Compile.NONE)
    with torch.no_grad():
        x = model.embedding(torch.zeros(SEQUENCES, LENGTH, dtype=torch.long))
        angles = rotary_angles(shape, LENGTH, x.device)
    living = Living(model.parameters())
    with living:
        x = x.requires_grad_() * 1  # the first block's input counts too
        for block in model.blocks.values():
            x = block(x, *angles)
    run = training_runs.Run(
        shape=as_planned(shape),
        activation_checkpointing=program_shapes.ActivationCheckpointing(mode),
    )
    return living.bytes(), run


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(_PLAIN, id="grouped queries"),
        pytest.param(dataclasses.replace(_PLAIN, kv_heads=8), id="each query has its key"),
        pytest.param(_QWEN, id="wider heads with norms"),
        pytest.param(_BIASED, id="biases"),
    ],
)
@pytest.mark.parametrize("mode", ActivationCheckpointing)
def test_blocks_keep_for_the_backward_pass_what_is_counted(
    kind: torch.dtype, shape: ModelShape, mode: ActivationCheckpointing
) -> None:
    found, run = kept(kind, shape, mode)
    tokens = SEQUENCES * LENGTH
    counted = tokens * footprint.kept_per_token(run, kind.itemsize)
    output = tokens * WIDTH * kind.itemsize  # of the last block: the next one's input
    assert found == pytest.approx(counted + output, rel=0.01)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(_IMAGES, id="one after the other"),
        pytest.param(dataclasses.replace(_IMAGES, is_parallel=True), id="parallel layers"),
        pytest.param(dataclasses.replace(_IMAGES, head_norms=True), id="normed queries and keys"),
        pytest.param(_LIKE_22B, id="like 22B"),
    ],
)
@pytest.mark.parametrize("mode", ActivationCheckpointing)
def test_blocks_of_images_keep_for_the_backward_pass_what_is_counted(
    kind: torch.dtype, shape: VisionShape, mode: ActivationCheckpointing
) -> None:
    model = model_of(shape).to(kind)
    prepare(model.blocks.values(), recomputed=mode, compiled=Compile.NONE)
    x = torch.zeros(SEQUENCES, shape.sequence_length, WIDTH, dtype=kind)
    living = Living(model.parameters())
    with living:
        x = x.requires_grad_() * 1
        for block in model.blocks.values():
            x = block(x)
    run = training_runs.Run(
        shape=as_planned(shape), activation_checkpointing=program_shapes.ActivationCheckpointing(mode)
    )
    tokens = SEQUENCES * shape.sequence_length
    counted = tokens * (footprint.kept_per_token(run, kind.itemsize) + WIDTH * kind.itemsize)
    assert living.bytes() == pytest.approx(counted, rel=0.01)
