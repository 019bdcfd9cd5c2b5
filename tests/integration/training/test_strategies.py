"""However a model is divided, recomputed, compiled or fed in parts, it learns the same."""

from dataclasses import replace
from itertools import pairwise

import pytest
from torch import Tensor
from torch._dynamo.utils import counters
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW

from tests.integration.training.learning import (
    SHAPE,
    STRATEGIES,
    loss_of,
    sha256,
    sharded,
    tokens_of,
    trained,
)
from tests.integration.training.worlds import in_world
from training.config import TrainConfig
from training.config.choices import ActivationCheckpointing, Compile, Precision, ReduceDtype
from training.config.decoder_shape import ModelShape
from training.models.init import initialise
from training.models.transformer import Transformer
from training.optim import learning_rate
from training.parallel.sharding import begin_part
from training.ranks.world import World

Losses = dict[str, list[float]]

_FP32 = TrainConfig(precision=Precision.FP32)
_BF16 = TrainConfig(precision=Precision.BF16)
_PURE = TrainConfig(precision=Precision.BF16_PURE)
_REDUCED = TrainConfig(precision=Precision.BF16, reduce_dtype=ReduceDtype.BF16)
_UNEVEN = ModelShape(layers=1, width=12, heads=2, kv_heads=1, hidden=3, vocabulary=131, sequence_length=32)
"""Divides by four nowhere; of the three rows of the feed-forward layer the fourth rank has none."""


def _losses(world: World, configs: dict[str, TrainConfig]) -> Losses:
    # Two hosts of two ranks, as far as hybrid strategies can tell.
    here = replace(world, ranks_per_host=2)
    return {name: trained(replace(config, lr=1e-3), here, steps=3)[2] for name, config in configs.items()}


def _furthest(*runs: list[float]) -> float:
    """The largest difference between the losses of a step."""
    furthest: float = max(max(losses) - min(losses) for losses in zip(*runs, strict=True))
    return furthest


@pytest.fixture(scope="module")
def four_ranks() -> Losses:
    """One launch for all: strategies by precision, offloading, prefetching, accumulation."""
    kinds = {"fp32": _FP32, "bf16": _BF16, "pure": _PURE, "reduced": _REDUCED}
    configs = {
        f"{kind} {strategy}": replace(config, strategy=strategy)
        for kind, config in kinds.items()
        for strategy in STRATEGIES
    }
    configs |= {
        f"parts {strategy}": replace(_FP32, strategy=strategy, gradient_accumulation_steps=2)
        for strategy in STRATEGIES
    }
    configs["fp32 offloaded"] = replace(_FP32, cpu_offload=True)
    configs["pure offloaded"] = replace(_PURE, cpu_offload=True)
    configs["bf16 two ahead"] = replace(_BF16, prefetch_blocks=2)
    for name, config in (("bf16", _BF16), ("fp32", _FP32), ("pure", _PURE)):
        for strategy in STRATEGIES:
            grouped = replace(config, strategy=strategy, min_unit_params=10**9, prefetch_blocks=2)
            configs[f"{name} {strategy} in one unit"] = grouped
    configs["bf16 recomputed in one unit"] = replace(
        _BF16, min_unit_params=10**9, activation_checkpointing=ActivationCheckpointing.FULL
    )
    configs["bf16 none ahead"] = replace(_BF16, prefetch_blocks=0)
    first, *others = in_world(4, _losses, configs)
    assert all(other == first for other in others)
    return first


_FAMILY = {
    "tied, windows": replace(
        SHAPE, head_width=24, head_norms=True, tied_head=True, window=5, windowed_layers=(1,)
    ),
    "biases": replace(SHAPE, qkv_bias=True, output_bias=True, feed_forward_bias=True),
}


def _family_losses(world: World) -> Losses:
    here = replace(world, ranks_per_host=2)
    return {
        f"{name} {strategy}": trained(config, here, steps=5, model=sharded(config, here, shape))[2]
        for name, shape in _FAMILY.items()
        for strategy in STRATEGIES
        for config in [replace(_FP32, strategy=strategy, lr=1e-3)]
    }


@pytest.mark.thorough
def test_T01_every_strategy_learns_the_same_of_the_other_families() -> None:
    alone, four = in_world(1, _family_losses)[0], in_world(4, _family_losses)[0]
    for name in _FAMILY:
        losses = [*_of(alone, name), *_of(four, name)]
        assert len(losses) == 2 * len(STRATEGIES)
        assert _furthest(*losses) < 1e-6
        assert losses[0][-1] < losses[0][0]


def _of(runs: Losses, kind: str) -> list[list[float]]:
    return [losses for name, losses in runs.items() if name.startswith(kind)]


def test_T01_every_strategy_learns_the_same_in_each_precision(four_ranks: Losses) -> None:
    # Gradients that were computed in bf16 add up in fp32 without a remainder, in any order.
    assert [len(_of(four_ranks, kind)) for kind in ("bf16", "pure")] == [13, 11]
    assert _furthest(*_of(four_ranks, "bf16")) == 0
    assert _furthest(*_of(four_ranks, "pure")) == 0
    # Those in fp32 do not, so only strategies with one order are equal to the last bit.
    full, hybrid = four_ranks["fp32 full_shard"], four_ranks["fp32 hybrid_shard"]
    assert full == four_ranks["fp32 shard_grad_op"] == four_ranks["fp32 offloaded"]
    assert hybrid == four_ranks["fp32 hybrid_shard_zero2"]
    assert _furthest(*_of(four_ranks, "fp32")) < 1e-7
    assert 0 < _furthest(*_of(four_ranks, "reduced")) < 5e-4
    assert all(later < earlier for earlier, later in pairwise(full))


def test_T01_bf16_learns_what_fp32_learns(four_ranks: Losses) -> None:
    fp32 = four_ranks["fp32 full_shard"]
    assert 0 < _furthest(fp32, four_ranks["bf16 full_shard"]) < 5e-4
    assert 0 < _furthest(fp32, four_ranks["reduced full_shard"]) < 5e-4
    # Here the weights themselves are rounded, from the first.
    assert 0 < _furthest(fp32, four_ranks["pure full_shard"]) < 2e-3


def test_T10_a_step_in_parts_is_the_step(four_ranks: Losses) -> None:
    for strategy in STRATEGIES:
        whole, parts = four_ranks[f"fp32 {strategy}"], four_ranks[f"parts {strategy}"]
        assert 0 < _furthest(whole, parts) < 1e-6


def _plain_losses(steps: int) -> list[float]:
    """By torch's own optimizer, clipping and loss, in this process, without FSDP."""
    model = Transformer(SHAPE)
    initialise(model, seed=0, layers=SHAPE.layers)
    matrices = [one for one in model.parameters() if one.ndim > 1]
    norms = [one for one in model.parameters() if one.ndim == 1]
    optimizer = AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": norms, "weight_decay": 0.0}], betas=(0.9, 0.95)
    )
    losses = []
    for step in range(1, steps + 1):
        loss = loss_of(model, tokens_of(step))
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, peak=3e-3, warmup_steps=5, steps=steps)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def _sharded_losses(world: World, config: TrainConfig) -> list[float]:
    return trained(config, world, steps=30)[2]


def test_T02_two_ranks_learn_what_one_plain_process_learns() -> None:
    sharded_run = in_world(2, _sharded_losses, _FP32)[0]
    plain = _plain_losses(30)
    assert _furthest(plain, sharded_run) < 2e-6
    assert plain[-1] < plain[0] - 1.5


def _first_weights(world: World) -> dict[str, str]:
    """The hash of all weights, by strategy."""
    here = replace(world, ranks_per_host=min(2, world.size))
    hashes = {}
    for strategy in STRATEGIES:
        model = sharded(replace(_FP32, seed=3, strategy=strategy), here)
        hashes[strategy.value] = sha256([_whole(one) for one in model.parameters()])
    return hashes


def _whole(parameter: Tensor) -> Tensor:
    return parameter.full_tensor() if isinstance(parameter, DTensor) else parameter  # of one rank alone


def test_T03_first_weights_do_not_depend_on_the_number_of_ranks_or_the_strategy() -> None:
    found = [in_world(ranks, _first_weights) for ranks in (1, 2, 4)]
    hashes = {one for world in found for rank in world for one in rank.values()}
    plain = Transformer(SHAPE)
    initialise(plain, seed=3, layers=SHAPE.layers)
    assert hashes == {sha256(list(plain.parameters()))}


def _rearranged(world: World) -> tuple[Losses, int]:
    """Recomputed and compiled; and how many graphs a model of ten blocks needs."""
    ways = {
        "neither": _BF16,
        "full": replace(_BF16, activation_checkpointing=ActivationCheckpointing.FULL),
        "selective": replace(_BF16, activation_checkpointing=ActivationCheckpointing.SELECTIVE),
        "compiled": replace(_BF16, compile=Compile.AOT_EAGER),
        "both": replace(
            _BF16, activation_checkpointing=ActivationCheckpointing.SELECTIVE, compile=Compile.AOT_EAGER
        ),
    }
    losses = {name: trained(config, world, steps=4)[2] for name, config in ways.items()}
    counters.clear()
    deep = sharded(replace(_BF16, compile=Compile.AOT_EAGER), world, replace(SHAPE, layers=10, width=32))
    loss_of(deep, tokens_of(1)).backward()
    return losses, counters["stats"]["unique_graphs"]


def test_T10_what_is_recomputed_or_compiled_is_equal_to_the_last_bit() -> None:
    losses, graphs = in_world(1, _rearranged)[0]
    assert len(losses) == 5
    assert _furthest(*losses.values()) == 0
    assert graphs == 1


def _uneven(world: World) -> Losses:
    shape = {"fp32": _FP32, "pure": _PURE}
    models = {kind: sharded(config, world, _UNEVEN) for kind, config in shape.items()}
    return {kind: trained(shape[kind], world, steps=5, model=model)[2] for kind, model in models.items()}


def test_ranks_with_fewer_rows_or_none_change_nothing() -> None:
    alone, four = (in_world(ranks, _uneven)[0] for ranks in (1, 4))
    assert _furthest(alone["fp32"], four["fp32"]) < 1e-6
    assert _furthest(alone["pure"], four["pure"]) < 5e-4


def _exchanges(world: World) -> dict[str, list[tuple[int, ...]]]:
    """Of each of two parts of a step: how often weights were gathered, gradients divided, copies added."""
    here = replace(world, ranks_per_host=2)
    found: dict[str, list[tuple[int, ...]]] = {}
    for strategy in STRATEGIES:
        model = sharded(replace(_BF16, strategy=strategy), here)
        for is_last in (False, True):
            with CommDebugMode() as spy:
                begin_part(model, is_last=is_last, strategy=strategy)
                loss_of(model, tokens_of(1).chunk(4)[world.rank]).backward()
            counts = {str(name).rpartition(".")[2]: number for name, number in spy.get_comm_counts().items()}
            names = ("_allgather_base_", "_reduce_scatter_base_", "allreduce_")
            found.setdefault(strategy.value, []).append(tuple(counts.get(name, 0) for name in names))
    return found


def test_copies_exchange_gradients_after_the_last_part_only() -> None:
    # Four units: embedding, two blocks, norm with head. The last one is gathered once for both passes.
    assert in_world(4, _exchanges)[0] == {
        "full_shard": [(7, 4, 0), (7, 4, 0)],
        "shard_grad_op": [(4, 4, 0), (0, 4, 0)],
        "hybrid_shard": [(7, 4, 0), (7, 4, 4)],
        "hybrid_shard_zero2": [(4, 4, 0), (0, 4, 4)],
        "no_shard": [(0, 0, 0), (0, 0, 4)],
    }
