"""What one rank finds out is said by all, or the others would wait for it."""

import torch.distributed as dist

from training.errors import WeightsError


def is_first() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def raise_together(failure: WeightsError | None) -> None:
    """Every rank calls, and raises what the first one of those that failed has to say."""
    messages = [str(failure) if failure else None]
    if dist.is_initialized():
        messages = [None] * dist.get_world_size()
        dist.all_gather_object(messages, str(failure) if failure else None)
    for message in messages:
        if message is not None:
            raise WeightsError(message) from failure
