"""Weights are gathered while the units before them compute."""

from collections.abc import Sequence

from torch.distributed.fsdp import FSDPModule


def gather_ahead(units: Sequence[FSDPModule], *, count: int) -> None:
    """In both passes, this many units ahead, for the memory of as many; 0 leaves it to FSDP.

    FSDP itself gathers one ahead in the backward pass. In the forward pass it issues the next gathering
    only when the host gets there, which is late where the host is slow.

    Args:
        units: In the order of the forward pass.
        count: Gathered before they are needed.
    """
    if not count:
        return
    for place, unit in enumerate(units):
        unit.set_modules_to_forward_prefetch(list(units[place + 1 : place + 1 + count]))
        unit.set_modules_to_backward_prefetch(list(reversed(units[max(0, place - count) : place])))
