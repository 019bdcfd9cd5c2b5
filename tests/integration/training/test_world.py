from datetime import timedelta

import torch
import torch.distributed as dist

from tests.integration.training.worlds import in_world
from training.ranks.world import World, expect_steady_steps


def _timeouts(world: World) -> list[timedelta]:
    """Of the group of all ranks and of one that was made later, after the first step."""
    later = dist.new_group(backend="gloo", timeout=timedelta(minutes=30))
    expect_steady_steps()
    groups = (dist.group.WORLD, later)
    return [group._get_backend(world.device).options._timeout for group in groups if group is not None]


def test_after_the_first_step_no_group_waits_longer_than_ten_minutes_for_a_rank_that_hangs() -> None:
    assert in_world(2, _timeouts) == [[timedelta(minutes=10)] * 2] * 2


def test_a_process_alone_needs_no_port(world: World) -> None:
    total = torch.ones(())
    dist.all_reduce(total)
    assert (world.rank, world.size, world.local_rank, total.item()) == (0, 1, 0, 1.0)
