"""Limit the time of a whole invocation by one deadline, checked before every call that costs time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from trainmaster.ports import Clock

NOTHING = timedelta()


@dataclass(frozen=True, slots=True)
class Deadline:
    left: Callable[[], timedelta]
    """Returns the time that is left; zero or less once the deadline has passed."""

    @classmethod
    def at(cls, instant: datetime, clock: Clock) -> Self:
        return cls(lambda: instant - clock())

    @classmethod
    def before_timeout(cls, remaining_ms: Callable[[], int], *, margin: timedelta) -> Self:
        """End a Lambda invocation's work ``margin`` early, so that the step begun last can finish.

        Args:
            remaining_ms: ``get_remaining_time_in_millis`` of the invocation's context.
            margin: Kept free before the function's timeout.
        """
        return cls(lambda: timedelta(milliseconds=remaining_ms()) - margin)

    @property
    def is_over(self) -> bool:
        return self.left() <= NOTHING

    def within(self, longest: timedelta) -> "Deadline":
        """Return the earlier one of this deadline and ``longest`` from now."""
        earlier_by = max(self.left() - longest, NOTHING)
        return Deadline(lambda: self.left() - earlier_by)

    def share(self, parts: int) -> "Deadline":
        """Return the deadline of the first of ``parts`` tasks that share equally what is left."""
        return self.within(max(self.left(), NOTHING) / parts)
