import pytest
import torch
import torch.distributed as dist

from tests.integration.training.worlds import RankFailedError, in_world
from training.ranks.world import World


def _sum_of_ranks(world: World, factor: int) -> tuple[int, torch.Tensor]:
    total = torch.tensor(world.rank * factor)
    dist.all_reduce(total)
    return world.rank, total


def _second_rank_fails(world: World) -> None:
    if world.rank == 1:
        raise ValueError("no")
    dist.barrier()


def test_every_rank_runs_the_function_and_its_results_come_back_in_order() -> None:
    results = in_world(3, _sum_of_ranks, factor=10)
    assert [rank for rank, _ in results] == [0, 1, 2]
    assert [total.item() for _, total in results] == [30, 30, 30]


def test_a_rank_that_fails_ends_the_others_and_is_named() -> None:
    with pytest.raises(RankFailedError, match=r"rank 1: (?s:.*)ValueError: no"):
        in_world(2, _second_rank_fails)
