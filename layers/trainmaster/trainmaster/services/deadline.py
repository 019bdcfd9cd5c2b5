"""How much time is left: one deadline for a whole invocation, looked at before every call that costs time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from trainmaster.ports import Clock

NOTHING = timedelta()


@dataclass(frozen=True, slots=True)
class Deadline:
    left: Callable[[], timedelta]
    """Time that is left; zero or less once it is over."""

    @classmethod
    def at(cls, instant: datetime, clock: Clock) -> Self:
        return cls(lambda: instant - clock())

    @classmethod
    def before_timeout(cls, remaining_ms: Callable[[], int], *, margin: timedelta) -> Self:
        """Of a Lambda invocation: what is begun at the last moment has ``margin`` to come to its end.

        Args:
            remaining_ms: ``get_remaining_time_in_millis`` of the invocation's context.
            margin: Kept free before the function's timeout.
        """
        return cls(lambda: timedelta(milliseconds=remaining_ms()) - margin)

    @property
    def is_over(self) -> bool:
        return self.left() <= NOTHING

    def within(self, longest: timedelta) -> "Deadline":
        """The earlier one of this and ``longest`` from now."""
        earlier_by = max(self.left() - longest, NOTHING)
        return Deadline(lambda: self.left() - earlier_by)

    def share(self, parts: int) -> "Deadline":
        """For the first of so many that have what is left between them."""
        return self.within(max(self.left(), NOTHING) / parts)
