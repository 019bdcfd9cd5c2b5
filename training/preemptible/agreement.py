"""All ranks agree on the step after which they stop, or save."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from training.preemptible.preempt import StopRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The same on every rank."""

    stop: bool
    """Some rank was asked to."""
    save: bool
    """Some rank wants a checkpoint now."""
    seconds_left: float
    """Until the first of those that were asked must have left."""
    seconds_needed: float = 0.0
    """By the estimate of the slowest of them, for what it is about to do and the save after it."""

    @property
    def must_drop(self) -> bool:
        """There is a stop, and no time to finish what is under way."""
        return self.stop and self.seconds_left < self.seconds_needed


class Agreement:
    """A vote of all ranks that runs beside the work of a step.

    A rank that stopped alone would leave the others waiting for it. The vote is a few numbers on the CPU in
    a process group of its own, so neither the GPU nor another collective is waited for. Every rank must
    begin and settle equally often.
    """

    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop
        self._group = dist.new_group(backend="gloo") if dist.is_initialized() else None
        self._votes = torch.zeros(4, dtype=torch.float64)
        self._under_way: dist.Work | None = None

    @property
    def is_asked(self) -> bool:
        """Tell whether this rank was asked to stop; the others may not know yet."""
        return self._stop.asked

    def begin(self, *, save: bool = False, seconds_needed: Callable[[], float] | None = None) -> None:
        """Vote.

        Args:
            save: This rank wants a checkpoint; usually the first rank alone watches the clock.
            seconds_needed: From now to the end of the save after what is under way. Only a rank that was
                asked to stop is asked for it.
        """
        asked = self._stop.asked
        needed = seconds_needed() if asked and seconds_needed is not None else 0.0
        self._votes = torch.tensor([asked, save, self._stop.seconds_since, needed], dtype=torch.float64)
        if self._group is not None:
            self._under_way = dist.all_reduce(
                self._votes, dist.ReduceOp.MAX, group=self._group, async_op=True
            )

    def settled(self) -> Decision:
        """What all ranks voted for in the vote that was begun last."""
        if self._under_way is not None:
            self._under_way.wait()
            self._under_way = None
        asked, save, seconds_since, needed = self._votes.tolist()
        return Decision(
            stop=bool(asked),
            save=bool(save),
            seconds_left=self._stop.seconds - seconds_since,
            seconds_needed=needed,
        )

    def now(self, *, save: bool = False) -> Decision:
        """Begin and settle at once, where there is no work to hide it behind."""
        self.begin(save=save)
        return self.settled()
