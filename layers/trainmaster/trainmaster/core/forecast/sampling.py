"""Instances that came free within one stretch of a forecast, and when."""

from bisect import bisect_right, insort
from datetime import datetime

from trainmaster.core.jobs.instances import Capacity, Vector


class Slots:
    def __init__(self) -> None:
        self._times: dict[Capacity, list[datetime]] = {}

    def forget(self) -> None:
        """What is still there has been free since before the stretch."""
        self._times.clear()

    def came_free(self, vector: Vector, at: datetime) -> None:
        for capacity, count in vector.items():
            times = self._times.setdefault(capacity, [])
            for _ in range(count):
                insort(times, at)

    def taken(self, vector: Vector, *, not_before: datetime) -> datetime:
        """When a job that waits since ``not_before`` has all it asks for.

        It takes what came free last before it came, or else what comes free first.
        """
        at = not_before
        for capacity, count in vector.items():
            times = self._times.get(capacity, [])
            for _ in range(min(count, len(times))):
                at = max(at, times.pop(max(bisect_right(times, not_before) - 1, 0)))
        return at
