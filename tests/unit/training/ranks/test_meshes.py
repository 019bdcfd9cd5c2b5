"""How ranks are arranged, and what cannot be."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from training.config import TrainConfig
from training.config.choices import OptimizerName, Strategy
from training.config.contradictions import contradictions
from training.config.decoder_shape import PRESETS
from training.errors import ConfigError
from training.parallel.tensor_parallel import tokens_note
from training.ranks.meshes import MeshShape, mesh_shape, with_shares
from training.ranks.world import World

_SEVEN = TrainConfig(preset="llama2-7b")


def _world(size: int, ranks_per_host: int, rank: int = 0) -> World:
    return World(
        rank=rank, size=size, local_rank=0, ranks_per_host=ranks_per_host, device=torch.device("cpu")
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"tensor_parallel": 4}, (1, 8, 4), id="FSDP divides a copy further, over all hosts"),
        pytest.param(
            {"tensor_parallel": 4, "strategy": Strategy.HYBRID_SHARD}, (4, 2, 4), id="a copy is a host"
        ),
        pytest.param(
            {"tensor_parallel": 8, "strategy": Strategy.HYBRID_SHARD}, (4, 1, 8), id="a host is one group"
        ),
        pytest.param(
            {"tensor_parallel": 2, "strategy": Strategy.HYBRID_SHARD_ZERO2, "shard_group_size": 16},
            (2, 8, 2),
            id="a copy is two hosts",
        ),
        pytest.param(
            {"tensor_parallel": 2, "strategy": Strategy.NO_SHARD}, (16, 1, 2), id="a copy is a group"
        ),
    ],
)
def test_copies_follow_hosts_and_matrices_are_divided_inside_them(
    options: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    copies, shards, tensor = expected
    found = mesh_shape(replace(_SEVEN, **options), _world(32, 8))
    assert found == MeshShape(copies=copies, shards=shards, tensor=tensor)


def test_ranks_of_a_tensor_group_have_one_share_of_the_batch() -> None:
    config = replace(_SEVEN, tensor_parallel=2)
    ranks = [with_shares(_world(8, 8, rank), config) for rank in range(8)]
    assert [one.data_rank for one in ranks] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert {one.data_ranks for one in ranks} == {4}


@pytest.mark.parametrize(
    ("options", "size", "per_host", "problem"),
    [
        pytest.param(
            {"tensor_parallel": 3}, 8, 8, "tensor_parallel 3 does not divide 8 ranks", id="ranks left over"
        ),
        pytest.param(
            {"strategy": Strategy.TP},
            16,
            8,
            "strategy tp on 16 ranks leaves hosts of 8 ranks, for a slow network: take a strategy that "
            "shards, with tensor_parallel 8 or a divisor of it",
            id="more than a host",
        ),
        pytest.param(
            {"tensor_parallel": 4, "strategy": Strategy.HYBRID_SHARD, "shard_group_size": 2},
            8,
            8,
            "tensor_parallel 4 does not divide shard_group_size 2",
            id="a copy smaller than a group",
        ),
        pytest.param(
            {"strategy": Strategy.HYBRID_SHARD, "shard_group_size": 6},
            24,
            8,
            "shard_group_size 6 straddles hosts of 8 ranks: take a divisor of 8, or whole hosts",
            id="copies that begin inside a host and end in another",
        ),
        pytest.param(
            {"preset": "tiny", "strategy": Strategy.TP},
            8,
            8,
            "strategy tp on 8 ranks does not divide heads 4; tensor_parallel 4 does",
            id="fewer heads than ranks",
        ),
        pytest.param(
            {"preset": "vit-tiny", "strategy": Strategy.TP},
            2,
            2,
            "strategy tp on 2 ranks does not divide heads 3; take strategy full_shard without it",
            id="an odd number of heads",
        ),
        pytest.param(
            {"preset": "vit-nano", "tensor_parallel": 4},
            8,
            8,
            "tensor_parallel 4 does not divide heads 2; tensor_parallel 2 does",
            id="fewer heads of images than ranks",
        ),
    ],
)
def test_what_does_not_come_out_even_is_refused(
    options: dict[str, Any], size: int, per_host: int, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        mesh_shape(replace(_SEVEN, **options), _world(size, per_host))
    assert caught.value.problems == (problem,)


def test_tokens_of_an_image_need_not_be_divided() -> None:
    config = TrainConfig(preset="vit-large", tensor_parallel=4)
    assert mesh_shape(config, _world(8, 8)).tensor == 4
    assert tokens_note(config.shape, 4) == (
        "the 197 tokens of an image do not divide by 4 ranks, so each has all of them between matrices"
    )
    larger = TrainConfig(preset="vit-22b")
    assert tokens_note(larger.shape, 4) == "each of 4 ranks has a part of the 256 tokens between matrices"
    assert tokens_note(larger.shape, 1) is tokens_note(_SEVEN.shape, 4) is None


@pytest.mark.parametrize("dimension", ["hidden", "vocabulary", "sequence_length", "kv_heads"])
def test_every_dimension_that_is_divided_must_come_out_even(dimension: str) -> None:
    size: dict[str, Any] = {dimension: 6 if dimension == "kv_heads" else 1022}
    shape = replace(PRESETS["llama2-7b"], **size)
    config = replace(_SEVEN, described=shape, tensor_parallel=4)
    with pytest.raises(ConfigError, match=f"tensor_parallel 4 does not divide {dimension} "):
        mesh_shape(config, _world(8, 8))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param(
            {"strategy": Strategy.TP, "tensor_parallel": 2},
            "strategy tp divides among all ranks: leave tensor_parallel out, or take full_shard with it",
            id="both",
        ),
        pytest.param(
            {"tensor_parallel": 2, "optimizer": OptimizerName.ADAMW_8BIT},
            "optimizer adamw_8bit does not go with tensor_parallel: its scales are of uncut rows",
            id="8 bits",
        ),
        pytest.param(
            {"strategy": Strategy.TP, "lora_rank": 4, "init_from": "there"},
            "lora_rank does not go with strategy tp: divide adapters with full_shard",
            id="adapters",
        ),
    ],
)
def test_what_cannot_be_divided_is_refused_before_torch_is_loaded(
    options: dict[str, Any], problem: str
) -> None:
    assert contradictions(replace(_SEVEN, **options)) == [problem]
