"""Random draws of a forecast by seed, and the times at which instances came free within one interval."""

from bisect import bisect_right, insort
from datetime import datetime
from hashlib import blake2b

from trainmaster.core.jobs.instances import Capacity, Vector


class Slots:
    def __init__(self) -> None:
        self._times: dict[Capacity, list[datetime]] = {}

    def forget(self) -> None:
        """Forget all times: instances that are still free have been so since before the interval."""
        self._times.clear()

    def came_free(self, vector: Vector, at: datetime) -> None:
        for capacity, count in vector.items():
            times = self._times.setdefault(capacity, [])
            for _ in range(count):
                insort(times, at)

    def taken(self, vector: Vector, *, not_before: datetime) -> datetime:
        """Take instances, and return when a job that waits since ``not_before`` has all it asks for.

        It takes those that came free last before it came, or else those that come free first.
        """
        at = not_before
        for capacity, count in vector.items():
            times = self._times.get(capacity, [])
            for _ in range(min(count, len(times))):
                # The last that came free before the job did, else the first: those that came earlier are left
                # for jobs that waited longer.
                at = max(at, times.pop(max(bisect_right(times, not_before) - 1, 0)))
        return at


_MASK = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


class Chance:
    """Uniform draws by SplitMix64. Source: Steele, Lea and Flood (2014), "Fast splittable generators"."""

    def __init__(self, seed: str) -> None:
        self._state = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest())

    def draw(self) -> float:
        """Return a number in [0, 1)."""
        self._state = (self._state + _STEP) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) / 2**53
