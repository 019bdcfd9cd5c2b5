"""Matrices of vision transformers divided among ranks: the training is that of one rank."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode

from tests.integration.training.learning import sha256
from tests.integration.training.worlds import in_world
from training.config import TrainConfig, read_config
from training.config.choices import (
    ActivationCheckpointing,
    Compile,
    Objective,
    OptimizerName,
    Precision,
    Strategy,
)
from training.config.vision_shape import Pooling, VisionShape
from training.data.batches import Batch
from training.families import objective_of, open_data
from training.job import make_model, run_in
from training.models.transformer import Backbone
from training.optim import clip, learning_rate, make_optimizer, step_if_finite
from training.parallel.sharding import begin_part
from training.preemptible.preempt import StopRequest
from training.ranks.meshes import with_shares
from training.ranks.world import World

Options = Mapping[str, Any]
Steps = list[tuple[float, float]]
"""Of each step the loss, and the norm of the gradients, which AdamW's update hardly shows."""

_WHOLE = VisionShape(layers=2, width=64, heads=4, hidden=96, patch=8, image_size=32, classes=10)
"""17 tokens, which do not divide."""
_DIVIDED = replace(_WHOLE, pooling=Pooling.MEAN)
_LIKE_22B = replace(_DIVIDED, qkv_bias=False, norm_bias=False, head_norms=True, is_parallel=True)
_BATCH, _STEPS = 8, 4
_KEY_BIAS = "key.bias"
"""Attention does not depend on it: its gradients are rounding alone, which AdamW makes as large as others."""
_FP32 = TrainConfig(precision=Precision.FP32, lr=1e-3, batch_size=_BATCH, described=_WHOLE)
_TP: Options = {"strategy": Strategy.TP}
_TWO: Options = {"tensor_parallel": 2}
_MASKED: Options = {"objective": Objective.MASKED, "mask_share": 0.5}
_SHARDED = [Strategy.FULL_SHARD, Strategy.SHARD_GRAD_OP, Strategy.HYBRID_SHARD, Strategy.HYBRID_SHARD_ZERO2]
_MODELS: Mapping[str, Options] = {
    "whole tokens": {"described": _WHOLE},
    "divided tokens": {"described": _DIVIDED},
    "parallel layers": {"described": _LIKE_22B},
    "whole tokens, masked": {"described": _WHOLE, **_MASKED},
    "divided tokens, masked": {"described": _LIKE_22B, **_MASKED},
}


def _learned(world: World, options: Options, ranks_per_host: int) -> Steps:
    config = replace(_FP32, **options)
    world = with_shares(replace(world, ranks_per_host=min(ranks_per_host, world.size)), config)
    model = make_model(config, world)
    optimizer, batches = make_optimizer(model, config), open_data(config, {}).batches(world)
    steps = []
    for step in range(1, _STEPS + 1):
        loss = _accumulated(model, _parts(batches.at(step), config), config)
        norm = clip(model, config.grad_clip)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, peak=config.lr, warmup_steps=2, steps=_STEPS)
        step_if_finite(optimizer, norm)
        optimizer.zero_grad()
        steps.append((world.summed(loss).item(), norm.item()))
    return steps


def _parts(batch: Batch, config: TrainConfig) -> Sequence[Batch]:
    chunks = [one.chunk(config.gradient_accumulation_steps) for one in batch]
    return list(zip(*chunks, strict=True))


def _accumulated(model: Backbone, parts: Sequence[Batch], config: TrainConfig) -> torch.Tensor:
    objective, total = objective_of(config), torch.zeros((), dtype=torch.float64)
    for number, part in enumerate(parts, 1):
        begin_part(model, is_last=number == len(parts), strategy=config.strategy)
        terms = objective.terms(objective.outputs(model, part), part)
        loss = terms.sum(dtype=torch.float64) / config.targets_per_step
        loss.backward()
        total += loss.detach()
    return total


def _all_learned(world: World, runs: Mapping[str, Options], ranks_per_host: int) -> dict[str, Steps]:
    return {name: _learned(world, options, ranks_per_host) for name, options in runs.items()}


def _is_same(found: Steps, expected: Steps, *, within: float = 1e-6) -> bool:
    """Losses within this, norms within fifty times this share."""
    assert len(found) == len(expected) == _STEPS
    return all(
        abs(loss - other) < within and norm == pytest.approx(another, rel=50 * within)
        for (loss, norm), (other, another) in zip(found, expected, strict=True)
    )


def _assert_all_as_alone(found: list[dict[str, Steps]], alone: Mapping[str, Steps]) -> None:
    assert all(one == found[0] for one in found)
    assert {name: _is_same(steps, alone[name]) for name, steps in found[0].items()} == dict.fromkeys(
        alone, True
    )


def test_two_ranks_that_divide_matrices_learn_what_one_learns() -> None:
    runs = {name: _MODELS[name] for name in ("whole tokens", "divided tokens, masked")}
    (alone,) = in_world(1, _all_learned, runs, 1)
    _assert_all_as_alone(
        in_world(2, _all_learned, {name: {**_TP, **one} for name, one in runs.items()}, 2), alone
    )


@pytest.mark.thorough
def test_every_model_learns_on_four_ranks_what_it_learns_on_one() -> None:
    (alone,) = in_world(1, _all_learned, _MODELS, 1)
    for ranks, options in ((2, _TP), (4, _TP), (4, _TWO)):
        runs = {name: {**options, **one} for name, one in _MODELS.items()}
        _assert_all_as_alone(in_world(ranks, _all_learned, runs, 4), alone)


def _arrangements() -> dict[str, Options]:
    runs: dict[str, Options] = {str(one): {**_TWO, "strategy": one} for one in _SHARDED}
    runs |= {f"parts {name}": {**one, "gradient_accumulation_steps": 2} for name, one in runs.items()}
    runs["copies"] = {**_TWO, "strategy": Strategy.NO_SHARD}
    runs["offloaded"] = {**_TWO, "cpu_offload": True}
    runs["full"] = {**_TWO, "activation_checkpointing": ActivationCheckpointing.FULL}
    runs["selective"] = {**_TWO, "activation_checkpointing": ActivationCheckpointing.SELECTIVE}
    runs["muon"] = {**_TWO, "optimizer": OptimizerName.MUON}
    runs["bf16"] = {**_TWO, "precision": Precision.BF16}
    return runs


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["whole tokens", "divided tokens, masked"])
def test_four_ranks_in_every_arrangement_learn_what_one_learns(model: str) -> None:
    plain = _MODELS[model]
    alone_runs = {"adamw": plain, "muon": {**plain, "optimizer": OptimizerName.MUON}}
    (alone,) = in_world(1, _all_learned, alone_runs, 1)
    runs = {name: {**plain, **options} for name, options in _arrangements().items()}
    found = in_world(4, _all_learned, runs, 2)
    assert all(one == found[0] for one in found)
    for name, steps in found[0].items():
        within = 5e-4 if name == "bf16" else 1e-6
        assert _is_same(steps, alone["muon" if name == "muon" else "adamw"], within=within), name


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["whole tokens", "parallel layers"])
def test_compiled_blocks_learn_the_same(model: str) -> None:
    runs = {model: _MODELS[model]}
    compiled = {model: {**_TWO, **_MODELS[model], "compile": Compile.AOT_EAGER}}
    _assert_all_as_alone(in_world(4, _all_learned, compiled, 4), in_world(1, _all_learned, runs, 1)[0])


@pytest.mark.thorough
def test_eight_ranks_in_three_dimensions_learn_what_one_learns() -> None:
    runs: dict[str, Options] = {str(one): {**_TWO, "strategy": one} for one in _SHARDED}
    runs["a host is one group"] = {"tensor_parallel": 4, "strategy": Strategy.HYBRID_SHARD}
    runs["masked"] = {**_MODELS["divided tokens, masked"], **runs["a host is one group"]}
    alone_runs = {"masked": _MODELS["divided tokens, masked"], "plain": {}}
    (alone,) = in_world(1, _all_learned, alone_runs, 1)
    found = in_world(8, _all_learned, runs, 4)
    expected = {name: alone["masked" if name == "masked" else "plain"] for name in runs}
    _assert_all_as_alone(found, expected)


def _first_weights(world: World, options: Options) -> str:
    config = replace(_FP32, seed=3, **_MASKED, **options)
    model = make_model(config, with_shares(replace(world, ranks_per_host=world.size), config))
    wholes = [one.full_tensor() if isinstance(one, DTensor) else one.detach() for one in model.parameters()]
    return sha256([one.contiguous() for one in wholes])


@pytest.mark.thorough
def test_first_weights_do_not_depend_on_the_mesh() -> None:
    plain = in_world(1, _first_weights, {})
    assert {*plain, *in_world(2, _first_weights, _TP), *in_world(4, _first_weights, _TWO)} == set(plain)


def _exchanged(world: World, options: Options) -> dict[str, int]:
    config = replace(_FP32, **_TP, **options)
    world = with_shares(replace(world, ranks_per_host=world.size), config)
    model, batch = make_model(config, world), open_data(config, {}).batches(world).at(1)
    with CommDebugMode() as spy:
        _accumulated(model, [batch], config)
    found = {str(name).rpartition(".")[2]: number for name, number in spy.get_comm_counts().items()}
    names = ("all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce")
    return {name: found.get(name, 0) for name in names}


def test_tokens_that_do_not_divide_are_summed_twice_by_a_block_in_each_pass() -> None:
    # And gathered once, by the embedding; norms are whole, as is all that follows the blocks.
    found = in_world(2, _exchanged, {"described": _WHOLE})[0]
    assert found == {"all_gather_into_tensor": 1, "reduce_scatter_tensor": 0, "all_reduce": 2 * (2 + 2)}


def test_tokens_that_divide_are_gathered_and_scattered_twice_by_a_block_in_each_pass() -> None:
    # And gathered by the embedding, forward and backward, and before the head; the sums are of norms.
    found = in_world(2, _exchanged, {"described": _DIVIDED})[0]
    blocks, norms = 2 * (2 + 2), 2 * 2 * 2
    assert found == {
        "all_gather_into_tensor": blocks + 3,
        "reduce_scatter_tensor": blocks,
        "all_reduce": norms,
    }


def _run(world: World, root: Path, *options: str) -> int:
    here = replace(world, ranks_per_host=world.size)
    places = (f"--checkpoint_dir={root / 'checkpoints'}", f"--model_dir={root / 'model'}")
    arguments = ("--preset=vit-nano", "--precision=fp32", f"--metrics_file={root / 'metrics'}", *places)
    return run_in(here, read_config([*arguments, *options], {}), {}, StopRequest())


@pytest.mark.thorough
def test_a_checkpoint_of_any_arrangement_is_resumed_by_any_other(tmp_path: Path) -> None:
    moved, alone = tmp_path / "moved", tmp_path / "alone"
    attempts = [(2, ["--strategy=tp"]), (4, ["--strategy=full_shard"]), (1, []), (2, ["--strategy=tp"])]
    attempts.append((4, ["--strategy=hybrid_shard", "--shard_group_size=2", "--tensor_parallel=2"]))
    for number, (ranks, arrangement) in enumerate(attempts, 1):
        options = (f"--steps={3 * number}", "--eval_every=3", "--eval_batches=2")
        assert in_world(ranks, _run, moved, *options, *arrangement) == [0] * ranks
        assert in_world(1, _run, alone, *options) == [0]
    mine, theirs = (
        [json.loads(line)["loss"] for line in (one / "metrics").read_text().splitlines()]
        for one in (moved, alone)
    )
    assert len(mine) == 15
    assert max(abs(one - other) for one, other in zip(mine, theirs, strict=True)) < 1e-6
    results = [json.loads((one / "model/metrics.json").read_bytes()) for one in (moved, alone)]
    assert results[0]["val_accuracy"] == results[1]["val_accuracy"]
    weights = [load_file(one / "model/model.safetensors") for one in (moved, alone)]
    apart = {name: (one - weights[1][name]).abs().max().item() for name, one in weights[0].items()}
    assert {name: far for name, far in apart.items() if far > 1e-5 and not name.endswith(_KEY_BIAS)} == {}
