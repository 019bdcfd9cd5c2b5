"""Time-weighted means over steps of equal length, of what was there from one instant to another."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.history.past_records import WaitCount, Window
from trainmaster.core.jobs.instances import Capacity

SECOND = timedelta(seconds=1)


@dataclass(slots=True)
class _Sums:
    """Of one quantity."""

    partial: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    """By step, count times seconds of what began or ended in it."""
    whole: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    """By step, how much more was there for whole steps from it on."""


@dataclass(slots=True)
class TimeMeans:
    """Whatever it is given costs the same, however many steps it lasted."""

    window: Window
    step: timedelta
    _sums: dict[Hashable, _Sums] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """The last one may be shorter."""
        return -((self.window.since - self.window.until) // self.step)

    def add(self, key: Hashable, count: float, *, began: datetime, ended: datetime | None) -> None:
        """``count`` more were there; ``ended``: None, they are there still."""
        sums = self._sums.setdefault(key, _Sums())
        first = max(began, self.window.since) - self.window.since
        last = min(ended or self.window.until, self.window.until) - self.window.since
        if last <= first:
            return
        start, end = first // self.step, last // self.step
        if start == end:
            sums.partial[start] += count * ((last - first) / SECOND)
            return
        sums.partial[start] += count * (((start + 1) * self.step - first) / SECOND)
        sums.partial[end] += count * ((last - end * self.step) / SECOND)
        sums.whole[start + 1] += count
        sums.whole[end] -= count

    def means(self, key: Hashable) -> list[float]:
        """Of each step."""
        sums = self._sums.get(key, _Sums())
        found, level = [], 0.0
        whole = self.window.until - self.window.since
        for number in range(self.steps):
            level += sums.whole.get(number, 0.0)
            length = min(self.step, whole - number * self.step) / SECOND
            found.append(level + sums.partial.get(number, 0.0) / length)
        return found


def waiting_at(since: datetime, now: dict[Capacity, int], counts: Iterable[WaitCount]) -> dict[Capacity, int]:
    """How many waited at an instant: those of now, less who came after it, with those who left."""
    waited = defaultdict(int, now)
    for one in counts:
        if one.minute > since:
            waited[one.capacity] -= one.count
    return dict(waited)
