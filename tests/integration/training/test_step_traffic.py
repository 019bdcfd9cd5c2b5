"""The plane's arithmetic of bytes on the wire, against the collectives that a step of the program calls.

A process group that only pretends lets one process be the first of all ranks: every collective is called
with its real size, and its numbers mean nothing.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from trainmaster.core.memory.footprint import Cluster, shards, tensor_ranks
from trainmaster.core.memory.step_traffic import step_traffic
from trainmaster.core.memory.training_runs import Run

from tests.integration.training.pretended import batch_of, pretended_world
from tools.training.plan import run_of
from training.config import TrainConfig
from training.config.choices import ActivationCheckpointing, Objective, Precision, ReduceDtype, Strategy
from training.config.decoder_shape import PRESETS
from training.config.vision_shape import Pooling, VisionShape
from training.families import objective_of
from training.job import make_model
from training.parallel.sharding import begin_part
from training.ranks.meshes import with_shares
from training.ranks.world import World

pytestmark = pytest.mark.thorough

RANKS, RANKS_PER_HOST = 8, 4
CLUSTER = Cluster(hosts=2, ranks_per_host=RANKS_PER_HOST, memory_bytes=1)
FSDP, TENSOR = "c10d", "_c10d_functional"
"""Who calls them: FSDP those of c10d, tensor parallel those that autograd knows."""
GATHER, SCATTER, REDUCE = "gather", "reduce_scatter", "all_reduce"
KINDS = {
    f"{FSDP}._allgather_base_.default": (FSDP, GATHER),
    f"{FSDP}._reduce_scatter_base_.default": (FSDP, SCATTER),
    f"{FSDP}.allreduce_.default": (FSDP, REDUCE),
    f"{TENSOR}.all_gather_into_tensor.default": (TENSOR, GATHER),
    f"{TENSOR}.reduce_scatter_tensor.default": (TENSOR, SCATTER),
    f"{TENSOR}.all_reduce.default": (TENSOR, REDUCE),
}
SILENT = ("_wrap_tensor_autograd", "wait_tensor")


class Collectives(TorchDispatchMode):
    """Bytes of the whole tensor of each collective, added up by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[tuple[str, str]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if "c10d" in str(func) and not any(word in str(func) for word in SILENT):
            tensors = [one for one in tree_leaves((made, args)) if isinstance(one, Tensor)]
            self.seen[KINDS[str(func)]] += max(one.nbytes for one in tensors)
        return made


@pytest.fixture(scope="module")
def first() -> Iterator[World]:
    """One world for all."""
    with pretended_world(RANKS, ranks_per_host=RANKS_PER_HOST) as world:
        yield world


def called(config: TrainConfig, first: World) -> Counter[tuple[str, str]]:
    """By one step of the program's model, on the first of the ranks."""
    world = with_shares(first, config)
    model = make_model(config, world)
    objective, parts = objective_of(config), config.gradient_accumulation_steps
    batch = batch_of(config, config.batch_size * world.ranks_per_share // RANKS // parts)
    collectives = Collectives()
    with collectives:
        for number in range(1, parts + 1):
            begin_part(model, is_last=number == parts, strategy=config.strategy)
            objective.terms(objective.outputs(model, batch), batch)[:, 0].sum().backward()
    return collectives.seen


def received(run: Run, seen: Counter[tuple[str, str]]) -> dict[str, float]:
    """What each rank receives by the collectives that were called."""
    tensor, copy = tensor_ranks(run, CLUSTER), shards(run, CLUSTER)
    among, copies = copy // tensor, RANKS // copy
    activations = seen[TENSOR, GATHER] + seen[TENSOR, SCATTER] + 2 * seen[TENSOR, REDUCE]
    return {
        "weights": seen[FSDP, GATHER] * (among - 1) / among,
        "gradients": seen[FSDP, SCATTER] * (among - 1) / among,
        "copies": 2 * seen[FSDP, REDUCE] * (copies - 1) / copies,
        "activations": activations * (tensor - 1) / tensor,
    }


CASES = [
    {"strategy": Strategy.FULL_SHARD},
    {"strategy": Strategy.FULL_SHARD, "activation_checkpointing": ActivationCheckpointing.FULL},
    {"strategy": Strategy.FULL_SHARD, "precision": Precision.FP32, "gradient_accumulation_steps": 2},
    {"strategy": Strategy.FULL_SHARD, "lora_rank": 4, "init_from": "x"},
    {"strategy": Strategy.SHARD_GRAD_OP, "gradient_accumulation_steps": 2},
    {"strategy": Strategy.HYBRID_SHARD, "gradient_accumulation_steps": 2},
    {"strategy": Strategy.HYBRID_SHARD, "shard_group_size": 2, "reduce_dtype": ReduceDtype.BF16},
    {"strategy": Strategy.HYBRID_SHARD_ZERO2, "precision": Precision.BF16_PURE},
    {"strategy": Strategy.NO_SHARD, "gradient_accumulation_steps": 2},
    {"strategy": Strategy.FULL_SHARD, "tensor_parallel": 2},
    {"strategy": Strategy.HYBRID_SHARD, "tensor_parallel": 2, "gradient_accumulation_steps": 2},
    {"strategy": Strategy.NO_SHARD, "tensor_parallel": 4},
    {"strategy": Strategy.NO_SHARD, "tensor_parallel": 4, "precision": Precision.FP32},
    {
        "strategy": Strategy.SHARD_GRAD_OP,
        "tensor_parallel": 4,
        "activation_checkpointing": ActivationCheckpointing.FULL,
    },
    {
        "strategy": Strategy.FULL_SHARD,
        "tensor_parallel": 2,
        "activation_checkpointing": ActivationCheckpointing.SELECTIVE,
    },
]


@pytest.mark.parametrize("options", CASES, ids=lambda one: " ".join(str(word) for word in one.values()))
def test_the_bytes_of_a_step_are_those_of_the_collectives_it_calls(
    first: World, options: dict[str, Any]
) -> None:
    assert_planned(TrainConfig(preset="tiny", sequence_length=16, batch_size=16, **options), first)


WHOLE = VisionShape(layers=3, width=64, heads=4, hidden=96, patch=8, image_size=32, classes=10)
DIVIDED = replace(WHOLE, pooling=Pooling.MEAN)
LIKE_22B = replace(DIVIDED, qkv_bias=False, norm_bias=False, head_norms=True, is_parallel=True)
BIASED = replace(PRESETS["tiny"], sequence_length=16, output_bias=True, feed_forward_bias=True)
MASKED = {"objective": Objective.MASKED, "mask_share": 0.5}
FULL = {"activation_checkpointing": ActivationCheckpointing.FULL}
DESCRIBED = {
    "texts with biases": {"described": BIASED, "tensor_parallel": 2},
    "sharded": {"described": WHOLE, "strategy": Strategy.FULL_SHARD},
    "copies in parts": {"described": WHOLE, "strategy": Strategy.NO_SHARD, "gradient_accumulation_steps": 2},
    "masked, kept": {"described": DIVIDED, "strategy": Strategy.SHARD_GRAD_OP, **MASKED},
    "whole tokens": {"described": WHOLE, "tensor_parallel": 2},
    "whole tokens, again": {"described": WHOLE, "tensor_parallel": 4, **FULL},
    "whole tokens, normed heads": {"described": replace(WHOLE, head_norms=True), "tensor_parallel": 2},
    "divided tokens": {"described": DIVIDED, "tensor_parallel": 2, "gradient_accumulation_steps": 2},
    "divided tokens, again": {"described": DIVIDED, "tensor_parallel": 4, **FULL},
    "like 22B": {"described": LIKE_22B, "tensor_parallel": 4, "strategy": Strategy.HYBRID_SHARD},
    "like 22B, masked, again": {"described": LIKE_22B, "tensor_parallel": 2, **MASKED, **FULL},
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_bytes_of_images_and_of_biases_are_those_of_the_collectives(first: World, name: str) -> None:
    options: dict[str, Any] = DESCRIBED[name]
    assert_planned(TrainConfig(batch_size=16, **options), first)


def assert_planned(config: TrainConfig, first: World) -> None:
    run = run_of(config)
    planned, counted = step_traffic(run, CLUSTER), received(run, called(config, first))
    assert sum(counted.values()) > 0
    assert {name: getattr(planned, name).total for name in counted} == pytest.approx(counted, abs=4)
