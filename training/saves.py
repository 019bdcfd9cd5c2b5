"""When checkpoints are made, and what they carry."""

import time
from collections.abc import Callable

from training.checkpoint import Checkpointer, SaveTimer
from training.meter import Meter


class Saves:
    """Every rank has one and calls alike.

    Args:
        checkpointer: It has loaded what there was.
        meter: Hears of each save, and knows what the next attempt must go on counting from.
        by_time: This rank says when one is due; ask one rank, clocks differ.
        check: Raises what forbids to save; called before each save.
        tell: Hears the step of a save that was begun, and for how many seconds it held the steps up.
    """

    def __init__(
        self,
        checkpointer: Checkpointer,
        meter: Meter,
        *,
        by_time: bool,
        check: Callable[[], None],
        tell: Callable[[int, float], None],
    ) -> None:
        self._checkpointer, self._meter = checkpointer, meter
        self._check, self._tell = check, tell
        self._timer = SaveTimer(time.monotonic()) if by_time else None

    def due(self) -> bool:
        """Whether this rank wants a checkpoint after the step that begins now."""
        return self._timer is not None and self._timer.due(time.monotonic())

    def save(self, step: int) -> None:
        self._check()
        stall = self._checkpointer.save(step, carried=self._meter.carried())
        self._meter.held_up(stall)
        self._tell(step, stall)
        if self._timer is not None:
            self._timer.saved(time.monotonic(), stall_seconds=stall)

    def save_within(self, step: int, seconds: float) -> bool:
        """False: there is no time to save it."""
        self._check()
        return self._checkpointer.save_within(step, seconds, carried=self._meter.carried())

    def finish(self) -> None:
        """Until the newest save is published."""
        self._checkpointer.wait()
