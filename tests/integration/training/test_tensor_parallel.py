"""Matrices divided among ranks, alone and with FSDP: the training is that of one rank."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode

from tests.integration.training.learning import SHAPE, loss_of, sha256, sharded, tokens_of, trained
from tests.integration.training.worlds import in_world
from tests.unit.training.data.corpora import written_documents
from training.config import TrainConfig, read_config
from training.config.choices import ActivationCheckpointing, Compile, OptimizerName, Precision, Strategy
from training.config.decoder_shape import ModelShape
from training.job import run_in
from training.parallel.sharding import begin_part
from training.preemptible.preempt import StopRequest
from training.ranks.meshes import with_shares
from training.ranks.world import World

Options = Mapping[str, Any]
Losses = dict[str, list[float]]

_FP32 = TrainConfig(precision=Precision.FP32, lr=1e-3)
_TP: Options = {"strategy": Strategy.TP}
_TWO: Options = {"tensor_parallel": 2}
_SHARDED = [Strategy.FULL_SHARD, Strategy.SHARD_GRAD_OP, Strategy.HYBRID_SHARD, Strategy.HYBRID_SHARD_ZERO2]
_FAMILY = {
    "heads for each": replace(SHAPE, heads=8, kv_heads=8),
    "heads shared": SHAPE,
    "tied, windows": replace(
        SHAPE, head_width=24, head_norms=True, tied_head=True, window=5, windowed_layers=(1,)
    ),
    "biases": replace(SHAPE, qkv_bias=True, output_bias=True, feed_forward_bias=True),
}


def _learned(world: World, options: Options, ranks_per_host: int, shape: ModelShape = SHAPE) -> list[float]:
    here = replace(world, ranks_per_host=min(ranks_per_host, world.size))
    config = replace(_FP32, **options, described=shape)
    return trained(config, here, steps=4, model=sharded(config, here, shape))[2]


def _all_learned(world: World, runs: Mapping[str, Options], ranks_per_host: int) -> Losses:
    return {name: _learned(world, options, ranks_per_host) for name, options in runs.items()}


def _furthest(found: list[float], expected: list[float]) -> float:
    return max(abs(one - other) for one, other in zip(found, expected, strict=True))


def test_two_ranks_that_divide_matrices_learn_what_one_learns() -> None:
    runs = {"plain": {}, "parts": {"gradient_accumulation_steps": 2}}
    (alone,) = in_world(1, _all_learned, {"plain": {}}, 1)
    first, second = in_world(2, _all_learned, {name: {**_TP, **one} for name, one in runs.items()}, 2)
    assert first == second
    for losses in first.values():
        assert _furthest(losses, alone["plain"]) < 1e-6
    assert alone["plain"][-1] < alone["plain"][0] - 0.1


@pytest.mark.thorough
def test_four_ranks_in_every_arrangement_learn_what_one_learns() -> None:
    runs: dict[str, Options] = {str(one): {**_TWO, "strategy": one} for one in _SHARDED}
    runs |= {f"parts {name}": {**one, "gradient_accumulation_steps": 2} for name, one in runs.items()}
    runs["copies"] = {**_TWO, "strategy": Strategy.NO_SHARD}
    runs["copies in parts"] = {**runs["copies"], "gradient_accumulation_steps": 2}
    runs["offloaded"] = {**_TWO, "cpu_offload": True}
    runs["full"] = {**_TWO, "activation_checkpointing": ActivationCheckpointing.FULL}
    runs["selective"] = {**_TWO, "activation_checkpointing": ActivationCheckpointing.SELECTIVE}
    runs["compiled"] = {**_TWO, "compile": Compile.AOT_EAGER}
    runs["muon"] = {**_TWO, "optimizer": OptimizerName.MUON}
    runs["bf16"] = {**_TWO, "precision": Precision.BF16}
    alone_runs = {"adamw": {}, "muon": {"optimizer": OptimizerName.MUON}}
    (alone,) = in_world(1, _all_learned, alone_runs, 1)
    found = in_world(4, _all_learned, runs, 2)
    assert all(one == found[0] for one in found)
    for name, losses in found[0].items():
        bound = 5e-4 if name == "bf16" else 1e-6
        assert _furthest(losses, alone["muon" if name == "muon" else "adamw"]) < bound, name


@pytest.mark.thorough
def test_eight_ranks_in_three_dimensions_learn_what_one_learns() -> None:
    runs: dict[str, Options] = {str(one): {**_TWO, "strategy": one} for one in _SHARDED}
    runs["a host is one group"] = {"tensor_parallel": 4, "strategy": Strategy.HYBRID_SHARD}
    (alone,) = in_world(1, _all_learned, {"plain": {}}, 1)
    found = in_world(8, _all_learned, runs, 4)
    assert all(one == found[0] for one in found)
    assert all(_furthest(losses, alone["plain"]) < 1e-6 for losses in found[0].values())


def _family(world: World) -> Losses:
    runs = [_TP, _TWO] if world.size > 1 else [{}]
    return {
        f"{name} {run}": _learned(world, options, 4, shape)
        for name, shape in _FAMILY.items()
        for run, options in enumerate(runs)
    }


@pytest.mark.thorough
def test_every_family_learns_the_same_on_divided_matrices() -> None:
    alone, four = in_world(1, _family)[0], in_world(4, _family)[0]
    assert len(four) == 2 * len(_FAMILY)
    for name, losses in four.items():
        assert _furthest(losses, alone[f"{name[:-1]}0"]) < 1e-6, name


def _first_weights(world: World, options: Options) -> str:
    model = sharded(replace(_FP32, seed=3, described=SHAPE, **options), world)
    wholes = [one.full_tensor() if isinstance(one, DTensor) else one.detach() for one in model.parameters()]
    return sha256([one.contiguous() for one in wholes])


@pytest.mark.thorough
def test_first_weights_do_not_depend_on_the_mesh() -> None:
    plain = in_world(1, _first_weights, {})
    assert {*plain, *in_world(2, _first_weights, _TP), *in_world(4, _first_weights, _TWO)} == set(plain)


def _exchanged(world: World, options: Options) -> dict[str, int]:
    config = replace(_FP32, described=SHAPE, **options)
    model, here = sharded(config, world), with_shares(world, config)
    with CommDebugMode() as spy:
        begin_part(model, is_last=True, strategy=config.strategy)
        loss_of(model, tokens_of(1).chunk(here.data_ranks)[here.data_rank]).backward()
    found = {str(name).rpartition(".")[2]: number for name, number in spy.get_comm_counts().items()}
    return {name: found.get(name, 0) for name in ("all_gather_into_tensor", "reduce_scatter_tensor")}


def test_a_block_gathers_its_tokens_twice_and_scatters_them_twice_in_each_pass() -> None:
    # Of two blocks; and of embedding, head and loss: scattered and gathered once each way, and the sums.
    blocks = 2 * (2 + 2)
    found = in_world(2, _exchanged, _TP)[0]
    assert found == {"all_gather_into_tensor": blocks + 3, "reduce_scatter_tensor": blocks + 2}


def _run(world: World, root: Path, ranks_per_host: int, *options: str) -> int:
    here = replace(world, ranks_per_host=min(ranks_per_host, world.size))
    places = (f"--checkpoint_dir={root / 'checkpoints'}", f"--model_dir={root / 'model'}")
    arguments = ("--precision=fp32", "--sequence_length=32", f"--metrics_file={root / 'metrics'}", *places)
    config = read_config([*arguments, *options], {})
    return run_in(here, config, {}, StopRequest())


def _losses(root: Path) -> dict[int, float]:
    """Of training by step, and as step 0 that of the last evaluation."""
    lines = [json.loads(line) for line in (root / "metrics").read_text().splitlines()]
    result = json.loads((root / "model/metrics.json").read_bytes())
    return {0: result["val_loss"], **{line["step"]: line["loss"] for line in lines}}


def _assert_same(found: Path, expected: Path, *, steps: int) -> None:
    mine, theirs = _losses(found), _losses(expected)
    assert list(mine) == list(theirs) == list(range(steps + 1))
    assert max(abs(mine[step] - theirs[step]) for step in theirs) < 1e-6


@pytest.mark.thorough
def test_a_checkpoint_of_any_arrangement_is_resumed_by_any_other(tmp_path: Path) -> None:
    moved, alone = tmp_path / "moved", tmp_path / "alone"
    attempts = [(2, ["--strategy=tp"]), (4, ["--strategy=full_shard"]), (1, []), (4, ["--strategy=tp"])]
    attempts.append((4, ["--strategy=hybrid_shard", "--tensor_parallel=2"]))
    for number, (ranks, arrangement) in enumerate(attempts, 1):
        options = (f"--steps={3 * number}", "--eval_every=3", "--eval_batches=2")
        assert in_world(ranks, _run, moved, 4, *options, *arrangement) == [0] * ranks
        assert in_world(1, _run, alone, 1, *options) == [0]
    _assert_same(moved, alone, steps=15)


@pytest.mark.thorough
def test_terms_in_chunks_and_documents_learn_the_same_on_divided_words(tmp_path: Path) -> None:
    lengths = range(20, 100)
    documents = [
        ([(7 * one + at) % 256 for at in range(one)], "01" * (one // 2) + "1" * (one % 2)) for one in lengths
    ]
    written_documents(tmp_path / "data", documents)
    data = (f"--data={tmp_path / 'data'}", f"--eval_data={tmp_path / 'data'}", "--document_mask=true")
    terms = ("--eval_every=3", "--eval_batches=2", "--loss_chunk=48", "--z_loss=1e-3")
    options = ("--steps=6", *terms, *data)
    assert in_world(1, _run, tmp_path / "alone", 1, *options) == [0]
    assert in_world(2, _run, tmp_path / "divided", 2, *options, "--strategy=tp") == [0, 0]
    _assert_same(tmp_path / "divided", tmp_path / "alone", steps=6)
