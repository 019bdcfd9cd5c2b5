"""A step in parts: what the ranks exchange after each of them, and what only after the last."""

from torch import nn
from torch.distributed.fsdp import FSDPModule

from training.choices import Strategy
from training.parallel.groups import HYBRID
from training.parallel.sharding import KEEPS_GATHERED


def begin_part(model: nn.Module, *, is_last: bool, strategy: Strategy) -> None:
    """Call before the forward pass of each part of a step, with ``is_last`` right for each of them.

    Sharded gradients are divided among their ranks after each part: to put that off would need the memory
    of all gradients on every rank. Copies of the model add theirs up once, after the last part. Weights
    that stay gathered through a part stay so to the next.

    A step that is given up before its last part leaves its sums inside FSDP, so this model must not train
    on after that.
    """
    assert isinstance(model, FSDPModule)
    if strategy is Strategy.NO_SHARD:
        model.set_requires_gradient_sync(is_last)
    elif strategy in HYBRID:
        model.set_requires_all_reduce(is_last)
    if strategy in KEEPS_GATHERED:
        model.set_reshard_after_backward(is_last)
