"""The plane's arithmetic of memory, against the program's own model, sharding and optimizer.

Nothing is allocated: a process group that only pretends, and tensors without data, let one process be the
first of 128 ranks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from trainmaster import memory

from training.choices import Precision, Strategy
from training.config import TrainConfig
from training.fitting import held_bytes
from training.models.llama import Transformer
from training.optim import make_optimizer
from training.parallel import shard
from training.plan import run_of
from training.presets import PRESETS
from training.world import World

RANKS_PER_HOST = 8


@contextmanager
def pretended_world(ranks: int) -> Iterator[World]:
    """The first of so many ranks."""
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    try:
        device = torch.device("cpu")
        yield World(rank=0, size=ranks, local_rank=0, ranks_per_host=RANKS_PER_HOST, device=device)
    finally:
        dist.destroy_process_group()


def sharded(config: TrainConfig, world: World, *, layers: int | None = None) -> Transformer:
    """The program's model, or one of fewer blocks: they are all alike."""
    with torch.device("meta"):
        model = Transformer(replace(config.shape, layers=layers or config.shape.layers))
    shard(model, world=world, config=config)
    return model


def planned(config: TrainConfig, ranks: int, *, layers: int | None = None) -> memory.BytesPerRank:
    cluster = memory.Cluster(hosts=ranks // RANKS_PER_HOST, ranks_per_host=RANKS_PER_HOST, memory_bytes=1)
    run = run_of(config)
    run = replace(run, shape=replace(run.shape, layers=layers or run.shape.layers))
    return memory.estimate(run, cluster).bytes_per_rank


def stepped(config: TrainConfig, model: Transformer) -> tuple[int, int, int]:
    """Bytes of weights, gradients and optimizer on this rank after one step on tensors without data."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        model.to_empty(device="cpu")
        optimizer = make_optimizer(model, config)
        gradients = []
        for one in model.parameters():
            one.grad = torch.zeros_like(one)
            gradients.append(one.grad)
        optimizer.step()
        states = [one for state in optimizer.state.values() for one in state.values()]
        assert all(isinstance(one, Tensor) for one in states)
        return held_bytes(model.parameters()), held_bytes(gradients), held_bytes(states)


def test_T18_the_plan_of_70b_on_128_ranks_is_what_its_first_rank_holds() -> None:
    config = TrainConfig(preset="llama2-70b")
    with pretended_world(128) as world:
        weights = held_bytes(sharded(config, world).parameters())
    assert weights == planned(config, 128).params == 2_155_520_256


@pytest.mark.parametrize("preset", PRESETS)
def test_T18_every_model_is_planned_within_a_hundredth_in_every_strategy_and_precision(preset: str) -> None:
    """Of 24 ranks, by which hardly any parameter divides evenly; after a step of the program's optimizer."""
    with pretended_world(24) as world:
        for strategy, precision in product(Strategy, Precision):
            config = TrainConfig(preset=preset, strategy=strategy, precision=precision)
            held = stepped(config, sharded(config, world, layers=2))
            plan = planned(config, 24, layers=2)
            assert held == pytest.approx((plan.params, plan.grads, plan.optimizer), rel=0.01), config


@pytest.mark.parametrize("group", [2, 4, 12])
def test_T18_groups_of_any_size_are_planned(group: int) -> None:
    config = TrainConfig(preset="llama-1b", strategy=Strategy.HYBRID_SHARD, shard_group_size=group)
    with pretended_world(24) as world:
        weights = held_bytes(sharded(config, world, layers=2).parameters())
    assert weights == pytest.approx(planned(config, 24, layers=2).params, rel=0.01)
