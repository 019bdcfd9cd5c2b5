"""The processes that train together: one alone, or those that torchrun started."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    rank: int
    size: int
    local_rank: int
    """Among the ranks of this host; the one with 0 does what is done once a host."""
    ranks_per_host: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        return self.rank == 0


@contextmanager
def joined_world(env: Mapping[str, str]) -> Iterator[World]:
    """Join the process group and leave it in order."""
    device = _device(int(env.get("LOCAL_RANK", "0")))
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    if "WORLD_SIZE" in env:
        dist.init_process_group(backend)
    else:
        # Alone: a port of this machine is not needed.
        dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1)
    try:
        yield World(
            rank=dist.get_rank(),
            size=dist.get_world_size(),
            local_rank=int(env.get("LOCAL_RANK", "0")),
            ranks_per_host=int(env.get("LOCAL_WORLD_SIZE", "1")),
            device=device,
        )
    finally:
        dist.destroy_process_group()
        # gloo's threads may still hold tensors, and then the interpreter aborts at exit
        # (pytorch/pytorch#179291): collect while they can still end.
        gc.collect()


def _device(local_rank: int) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)
