"""All ranks agree on the step after which they stop, or save."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from training.preemptible.preempt import StopRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision of all ranks; it is the same on every rank."""

    stop: bool
    """True if some rank was asked to stop."""
    save: bool
    """True if some rank wants a checkpoint now."""
    seconds_left: float
    """Seconds until the first of the ranks that were asked to stop must have left."""
    seconds_needed: float = 0.0
    """Seconds that the slowest of these ranks estimates for the work under way and the save after it."""

    @property
    def must_drop(self) -> bool:
        """Tell whether there is a stop, and no time to finish what is under way."""
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
        """Begin a vote with this rank's wishes; ``settled`` gives its result.

        Args:
            save: This rank wants a checkpoint; usually the first rank alone watches the clock.
            seconds_needed: Estimates the seconds from now to the end of the save after the work under way. It
                is called only on a rank that was asked to stop.
        """
        is_stopping = self._stop.asked
        needed = seconds_needed() if is_stopping and seconds_needed is not None else 0.0
        self._votes = torch.tensor([is_stopping, save, self._stop.seconds_since, needed], dtype=torch.float64)
        if self._group is not None:
            self._under_way = dist.all_reduce(
                self._votes, dist.ReduceOp.MAX, group=self._group, async_op=True
            )

    def settled(self) -> Decision:
        """Wait for the vote that was begun last, and return what all ranks decided."""
        if self._under_way is not None:
            self._under_way.wait()
            self._under_way = None
        stop, save, seconds_since, needed = self._votes.tolist()
        return Decision(
            stop=bool(stop),
            save=bool(save),
            seconds_left=self._stop.seconds - seconds_since,
            seconds_needed=needed,
        )

    def now(self, *, save: bool = False) -> Decision:
        """Begin and settle at once, where there is no work to hide it behind."""
        self.begin(save=save)
        return self.settled()
