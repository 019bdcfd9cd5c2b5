"""The options reach FSDP: what equal losses alone would not show."""

from collections import Counter
from dataclasses import replace
from typing import Any

import torch
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.integration.training.learning import SHAPE, loss_of, sharded, tokens_of, trained
from training.config import TrainConfig
from training.config.choices import ActivationCheckpointing, Precision, ReduceDtype
from training.models.transformer import Transformer
from training.parallel.sharding import grouped
from training.ranks.world import World


def _groups(config: TrainConfig, world: World) -> list[Any]:
    """FSDP's own view of each unit, in the order of the forward pass."""
    model = sharded(config, world)
    units = [model.embedding, *model.blocks.values(), model.norm]
    states = [unit._get_fsdp_state() for unit in units if isinstance(unit, FSDPModule)]
    assert len(states) == SHAPE.layers + 2
    return [state._fsdp_param_groups[0] for state in states]


class _Calls(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def test_blocks_are_recomputed_as_asked(world: World) -> None:
    attentions = []
    for kind in (ActivationCheckpointing.NONE, ActivationCheckpointing.FULL):
        model = sharded(TrainConfig(precision=Precision.BF16, activation_checkpointing=kind), world)
        with _Calls() as calls:
            loss_of(model, tokens_of(1)).backward()
        attentions.append(calls.counts["_scaled_dot_product_flash_attention_for_cpu"])
    assert attentions == [2, 4]


def test_units_are_gathered_as_far_ahead_as_asked(world: World) -> None:
    model = sharded(TrainConfig(precision=Precision.BF16, prefetch_blocks=2), world)
    embedding, first = model.embedding, model.blocks["0"]
    assert isinstance(embedding, FSDPModule)
    assert isinstance(first, FSDPModule)
    assert len(embedding._get_fsdp_state()._states_to_forward_prefetch) == 2
    assert first._get_fsdp_state()._states_to_backward_prefetch == [embedding._get_fsdp_state()]


def test_neighbouring_blocks_are_gathered_together_until_they_are_large_enough(world: World) -> None:
    shape = replace(SHAPE, layers=5)
    with torch.device("meta"):
        blocks = list(Transformer(shape).blocks.values())
    size = sum(weight.numel() for weight in blocks[0].parameters())
    sizes = {
        least: [len(group) for group in grouped(blocks, least=least)]
        for least in (0, 1, size, size + 1, 2 * size, 10**9)
    }
    assert sizes == {
        0: [1, 1, 1, 1, 1],
        1: [1, 1, 1, 1, 1],
        size: [1, 1, 1, 1, 1],
        size + 1: [2, 2, 1],
        2 * size: [2, 2, 1],
        10**9: [5],
    }
    model = sharded(TrainConfig(precision=Precision.BF16, min_unit_params=size + 1), world, shape)
    units = [block for block in model.blocks.values() if isinstance(block, FSDPModule)]
    assert [unit._get_fsdp_state() is units[0]._get_fsdp_state() for unit in units] == [
        True,
        True,
    ] + 3 * [False]


def test_gradients_are_summed_in_the_precision_asked_for(world: World) -> None:
    for reduced, kind in ((ReduceDtype.FP32, torch.float32), (ReduceDtype.BF16, torch.bfloat16)):
        for group in _groups(TrainConfig(precision=Precision.BF16, reduce_dtype=reduced), world):
            assert group.mp_policy.reduce_dtype is kind
            assert group.mp_policy.param_dtype is torch.bfloat16


def test_weights_are_kept_in_the_precision_asked_for(world: World) -> None:
    kept = {Precision.FP32: torch.float32, Precision.BF16: torch.float32, Precision.BF16_PURE: torch.bfloat16}
    for precision, kind in kept.items():
        model = sharded(TrainConfig(precision=precision), world)
        assert {one.dtype for one in model.parameters()} == {kind}


def test_without_an_accelerator_offloaded_weights_are_not_pinned(world: World) -> None:
    for group in _groups(TrainConfig(precision=Precision.BF16, cpu_offload=True), world):
        assert group.offload_policy == CPUOffloadPolicy(pin_memory=False)


def test_a_rank_alone_in_fp32_keeps_the_plain_model_and_every_bit_of_its_losses(world: World) -> None:
    config = TrainConfig(precision=Precision.FP32, gradient_accumulation_steps=2, steps=5)
    in_fsdp = replace(config, cpu_offload=True)
    assert not any(isinstance(one, DTensor) for one in sharded(config, world).parameters())
    assert all(isinstance(one, DTensor) for one in sharded(in_fsdp, world).parameters())
    assert trained(config, world, steps=5)[2] == trained(in_fsdp, world, steps=5)[2]


def test_a_head_that_is_the_embedding_stays_it_however_a_lone_rank_keeps_its_weights(world: World) -> None:
    tied = replace(SHAPE, tied_head=True)
    for precision in (Precision.FP32, Precision.BF16):
        model = sharded(TrainConfig(precision=precision), world, tied)
        assert model.head.weight is model.embedding.weight
        assert (
            sum(name.endswith("weight") and "block" not in name for name, _ in model.named_parameters()) == 2
        )
