"""One process that is the first of many ranks: a process group that only pretends, and what it trains on."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.distributed.tensor.debug import _clear_sharding_prop_cache
from torch.testing._internal.distributed.fake_pg import FakeStore

from training.config import TrainConfig
from training.config.vision_shape import CHANNELS, VisionShape
from training.data.batches import Batch
from training.ranks.world import World

RANKS_PER_HOST = 8


@contextmanager
def pretended_world(ranks: int, *, ranks_per_host: int = RANKS_PER_HOST) -> Iterator[World]:
    """The first of so many ranks."""
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    try:
        device = torch.device("cpu")
        yield World(rank=0, size=ranks, local_rank=0, ranks_per_host=ranks_per_host, device=device)
    finally:
        dist.destroy_process_group()
        _clear_sharding_prop_cache()  # else a like mesh of the next world gets these groups


def batch_of(config: TrainConfig, samples: int) -> Batch:
    """Of the right shape; what is in it says nothing."""
    shape = config.shape
    if isinstance(shape, VisionShape):
        images = torch.zeros((samples, CHANNELS, shape.image_size, shape.image_size), dtype=torch.uint8)
        hidden = torch.ones((samples, shape.patches), dtype=torch.bool)
        return images, hidden if shape.masked else torch.zeros((samples, 1), dtype=torch.long)
    tokens = torch.zeros((samples, shape.sequence_length), dtype=torch.long)
    return tokens, tokens
