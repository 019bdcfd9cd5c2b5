"""When instances are expected to come free without a stop. Good for weighing waits, never for promises."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from math import inf
from operator import itemgetter

from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.planning.capacity import ASKED_TO_STOP, take
from trainmaster.core.planning.snapshot import RunningJob

UNKNOWN_RUN = timedelta(hours=4)
"""How long a job is expected to train about which nothing is known."""

_Frees = tuple[timedelta, int]
"""From now on so long, then so many instances come free."""


def remaining(job: RunningJob, *, now: datetime) -> timedelta:
    """How much longer it is expected to hold its instances.

    One that outlived its prediction is as likely as not to train as long again as it has until now: run times
    have long tails. It never counts for longer than its end is certain.
    """
    trained = timedelta() if job.training_since is None else now - job.training_since
    predicted = job.expected.predicted if job.expected.predicted is not None else UNKNOWN_RUN
    left = predicted - trained if predicted > trained else trained
    if job.expected.ends_by is not None:
        left = min(left, job.expected.ends_by - now)
    return max(left, timedelta())


@dataclass(slots=True, kw_only=True)
class _Ends:
    """Of one capacity, the next first: what comes free, and how many have by then."""

    at: list[timedelta]
    counts: list[int]
    gone: list[_Frees] = field(default_factory=list)
    """Of jobs that are being stopped: they end, but for somebody else."""

    @classmethod
    def of(cls, frees: list[_Frees]) -> "_Ends":
        frees.sort(key=itemgetter(0))
        return cls(at=[left for left, _ in frees], counts=list(accumulate(count for _, count in frees)))

    def until(self, count: int) -> timedelta:
        """Until so many have come free; where so many never do, until all have."""
        wanted = count
        while True:
            index = min(bisect_left(self.counts, wanted), len(self.at) - 1)
            reached = self.at[index]
            more = count + sum(n for _, n in self.gone[: bisect_left(self.gone, (reached, inf))])
            if more <= wanted or index == len(self.at) - 1:
                return reached
            wanted = more


@dataclass(kw_only=True)
class ExpectedEnds:
    """Of the jobs that hold a pool's instances, sorted once: a question costs no more where more run."""

    by_capacity: dict[Capacity, _Ends]
    now: datetime
    ahead: dict[Capacity, int] = field(default_factory=dict)
    """What those who wait ahead take of what comes free."""

    @classmethod
    def of(cls, running: Iterable[RunningJob], *, now: datetime) -> "ExpectedEnds":
        found: dict[Capacity, list[_Frees]] = {}
        for job in running:
            if job.state not in ASKED_TO_STOP:
                left = remaining(job, now=now)
                for capacity, count in job.vector.items():
                    found.setdefault(capacity, []).append((left, count))
        return cls(by_capacity={one: _Ends.of(frees) for one, frees in found.items()}, now=now)

    def wait(self, short: Vector) -> timedelta:
        """Until so much more is free than now, for whoever comes behind those ahead."""
        waits = (
            self.by_capacity[one].until(count + self.ahead.get(one, 0))
            for one, count in short.items()
            if one in self.by_capacity
        )
        return max(waits, default=timedelta())

    def goes_ahead(self, vector: Vector) -> None:
        """One that waits for it, before those who ask from here on."""
        take(self.ahead, vector, times=-1)

    def stopped(self, job: RunningJob) -> None:
        """What it frees is kept for its preemptor."""
        left = remaining(job, now=self.now)
        for capacity, count in job.vector.items():
            insort(self.by_capacity[capacity].gone, (left, count))
