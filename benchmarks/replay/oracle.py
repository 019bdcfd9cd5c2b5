"""A schedule of one pool that knows every run time and may stop and continue for nothing.

Whoever is worth most for the work that is left always runs. It is no bound: another may be better. It says
how close a bound comes, and what an instant of an instance is worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple


class Demand(NamedTuple):
    """A job as the oracle and the bound see it."""

    weight: float
    release_s: int
    holds_s: int
    """Least time it holds its instances, over all attempts."""
    instances: float
    """Not a whole number only of an elastic job, as the bound sees it."""


class Step(NamedTuple):
    """A time in which nothing changes."""

    since_s: int
    until_s: int
    worth: float
    """Weight for each second and instance of the least that runs; 0 if no job waits."""


@dataclass(slots=True, kw_only=True)
class Schedule:
    steps: list[Step] = field(default_factory=list)
    weighted_s: float = 0.0
    """Sum of weight x (completion - release - time held)."""
    end_s: int = 0


@dataclass(slots=True)
class _Pool:
    jobs: Sequence[Demand]
    count: int
    left_s: dict[int, int] = field(default_factory=dict)
    """Seconds left, by the number of each job that is not over."""
    waiting: list[tuple[float, int]] = field(default_factory=list)
    """Heap of waiting jobs, the most worth first."""
    running: list[int] = field(default_factory=list)

    def enters(self, number: int) -> None:
        self.left_s[number] = self.jobs[number].holds_s
        heappush(self.waiting, self.rank(number))

    def rank(self, number: int) -> tuple[float, int]:
        job = self.jobs[number]
        return (-job.weight / (job.instances * self.left_s[number]), number)

    def choose(self) -> float:
        """Choose who runs from now on; return the least worth among them if any job waits, else 0."""
        ranked = sorted(map(self.rank, self.running))
        free: float = self.count
        chosen, place, worth = list[int](), 0, 0.0
        while free and (place < len(ranked) or self.waiting):
            from_queue = place == len(ranked) or (bool(self.waiting) and self.waiting[0] < ranked[place])
            rank, number = self.waiting[0] if from_queue else ranked[place]
            if self.jobs[number].instances > free:
                break
            if from_queue:
                heappop(self.waiting)
            else:
                place += 1
            chosen.append(number)
            free -= self.jobs[number].instances
            worth = -rank
        for left in ranked[place:]:
            heappush(self.waiting, left)
        self.running = chosen
        return worth if self.waiting else 0.0

    def train(self, seconds: int) -> list[Demand]:
        """Train the running jobs for so many seconds; return those that have ended."""
        over = []
        for number in self.running:
            self.left_s[number] -= seconds
            if not self.left_s[number]:
                over.append(number)
                del self.left_s[number]
        self.running = [number for number in self.running if number in self.left_s]
        return [self.jobs[number] for number in over]


def oracle(jobs: Sequence[Demand], count: int) -> Schedule:
    """Schedule the jobs with full knowledge; no job is wider than ``count``."""
    ordered = sorted(jobs, key=lambda job: job.release_s)
    pool, schedule = _Pool(ordered, count), Schedule()
    now = entered = 0
    while entered < len(ordered) or pool.left_s:
        if not pool.left_s:
            now = max(now, ordered[entered].release_s)
        while entered < len(ordered) and ordered[entered].release_s <= now:
            pool.enters(entered)
            entered += 1
        worth = pool.choose()
        seconds = min(pool.left_s[number] for number in pool.running)
        if entered < len(ordered):
            seconds = min(seconds, ordered[entered].release_s - now)
        schedule.steps.append(Step(now, now + seconds, worth))
        now += seconds
        for job in pool.train(seconds):
            schedule.weighted_s += job.weight * (now - job.release_s - job.holds_s)
    schedule.end_s = now
    return schedule
