import pytest
import torch

from training.choices import Strategy
from training.config import TrainConfig
from training.errors import ConfigError
from training.parallel.groups import ranks_of_a_copy
from training.world import World


def _world(size: int, ranks_per_host: int) -> World:
    return World(rank=0, size=size, local_rank=0, ranks_per_host=ranks_per_host, device=torch.device("cpu"))


@pytest.mark.parametrize(
    ("strategy", "group", "expected"),
    [
        pytest.param("full_shard", 0, 32, id="full_shard divides a copy among all"),
        pytest.param("shard_grad_op", 0, 32, id="so does shard_grad_op"),
        pytest.param("hybrid_shard", 0, 8, id="hybrid_shard among the ranks of a host"),
        pytest.param("hybrid_shard_zero2", 16, 16, id="or of a group as large as asked"),
        pytest.param("hybrid_shard", 32, 32, id="which may be all"),
        pytest.param("no_shard", 0, 1, id="no_shard gives each rank a copy"),
    ],
)
def test_ranks_of_a_copy(strategy: str, group: int, expected: int) -> None:
    config = TrainConfig(strategy=Strategy(strategy), shard_group_size=group)
    assert ranks_of_a_copy(config, _world(32, 8)) == expected


@pytest.mark.parametrize(
    ("size", "ranks_per_host", "group", "problem"),
    [
        pytest.param(32, 8, 12, "shard_group_size 12 does not divide 32 ranks", id="left over"),
        pytest.param(
            10,
            4,
            0,
            "shard_group_size 4 (the ranks of a host) does not divide 10 ranks",
            id="unlike hosts",
        ),
        pytest.param(
            4,
            1,
            0,
            "shard_group_size 1 (the ranks of a host) divides nothing: set another, or strategy "
            "full_shard or no_shard",
            id="hosts of one rank",
        ),
    ],
)
def test_groups_that_cannot_be_are_refused(size: int, ranks_per_host: int, group: int, problem: str) -> None:
    config = TrainConfig(strategy=Strategy.HYBRID_SHARD, shard_group_size=group)
    with pytest.raises(ConfigError) as caught:
        ranks_of_a_copy(config, _world(size, ranks_per_host))
    assert caught.value.problems == (problem,)


def test_one_rank_alone_needs_no_groups() -> None:
    assert ranks_of_a_copy(TrainConfig(strategy=Strategy.HYBRID_SHARD), _world(1, 1)) == 1
