"""Expected ends: when instances come free without a stop. Good for weighing waits, never for promises."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from heapq import heapify, heappop, heapreplace

from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.planning.capacity import ASKED_TO_STOP
from trainmaster.core.planning.snapshot import RunningJob

UNKNOWN_RUN = timedelta(hours=4)
"""Expected training time of a job about which nothing is known."""
SPREAD = (1 / 5, 1, 5)
"""Multiples of the likely remaining time within which one, three and five of six jobs end.

The model is P(end within x) = x / (x + likely): run times have long tails."""
_SOON, _, _LATE = SPREAD
_UNKNOWN_S = UNKNOWN_RUN.total_seconds()

_Frees = tuple[float, int]
"""Seconds until, and number of, instances come free; each of a job's is counted once for each of
``SPREAD``."""

_Kind = tuple[float, int, list[float]]
"""Seconds until the next end, and a heap of all further ones, of jobs that hold so many instances each. The
ends of a job are bare numbers, as a plan of a large pool has three for each job and sorts few of them."""


def chances(job: RunningJob, *, now: datetime) -> tuple[float, float, float]:
    """Return the seconds in which one, three and five of six such jobs end; at most until its end is certain.

    One that outlasted its prediction is as likely as not to train as long again as it has until now.
    """
    since, expected = job.training_since, job.expected
    predicted, ends_by = expected.predicted, expected.ends_by
    trained = (now - since).total_seconds() if since is not None else 0.0
    whole = predicted.total_seconds() if predicted is not None else _UNKNOWN_S
    likely = whole - trained if whole > trained else trained
    soon, late = likely * _SOON, likely * _LATE
    if ends_by is None:
        return soon, likely, late
    latest = (ends_by - now).total_seconds()
    if late <= latest:  # nearly always
        return soon, likely, late
    if likely <= latest:
        return soon, likely, latest
    latest = max(latest, 0.0)
    return min(soon, latest), latest, latest


@dataclass(slots=True, kw_only=True)
class _Ends:
    """Ends on one capacity, sorted only as far as is asked for."""

    later: list[_Kind]
    """Ends that are not sorted yet, as a heap of heaps."""
    width: float
    """Mean instances of a job, each instance counted once."""
    at: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    """Instances that have come free at each of ``at``, ``SPREAD`` times."""
    gone: list[_Frees] = field(default_factory=list)
    """Ends of jobs that are being stopped: they end, but another job gets their instances."""
    known: dict[int, float] = field(default_factory=dict)
    """Answers of ``until``, valid until another job is stopped."""

    @classmethod
    def of(cls, kinds: Iterable[tuple[int, list[float]]]) -> "_Ends":
        later: list[_Kind] = []
        squares = instances = 0
        for count, ends in kinds:
            heapify(ends)
            later.append((ends[0], count, ends))
            squares += count * count * len(ends)
            instances += count * len(ends)
        heapify(later)
        return cls(later=later, width=squares / instances)

    def until(self, count: int) -> float:
        """Return the seconds until as likely as not this many have come free.

        If there are never so many, it is until all have.
        """
        if count not in self.known:
            self.known[count] = self._until(count)
        return self.known[count]

    def stopped(self, frees: Iterable[_Frees]) -> None:
        self.gone += frees
        self.known.clear()

    def _until(self, count: int) -> float:
        """Compute ``until``.

        Jobs give all of theirs back at once, so half of the time that is before the mean.
        """
        # Ends of stopping jobs are in the sorted list, but their instances go to others. Each round adds
        # those that are due by the instant found so far, until the instant does not move any more.
        wanted = enough = len(SPREAD) * (max(count, self.width) - self.width / 2)
        while True:
            reached = self._reached(wanted)
            with_gone = enough + sum(n for at, n in self.gone if at <= reached)
            if with_gone <= wanted:
                return reached
            wanted = with_gone

    def _reached(self, wanted: float) -> float:
        while self.later and (not self.counts or self.counts[-1] < wanted):
            at, count, ends = self.later[0]
            heappop(ends)
            if ends:
                heapreplace(self.later, (ends[0], count, ends))
            else:
                heappop(self.later)
            self.at.append(at)
            self.counts.append(count + (self.counts[-1] if self.counts else 0))
        return self.at[min(bisect_left(self.counts, wanted), len(self.at) - 1)]


@dataclass(kw_only=True)
class ExpectedEnds:
    """Expected ends of the jobs that hold a pool's instances, sorted at the first question about them."""

    running: Iterable[RunningJob]
    now: datetime
    ahead: dict[Capacity, int] = field(default_factory=dict)
    """Instances that jobs waiting ahead take of those that come free."""

    def are_guessed(self, short: Vector) -> bool:
        """Tell whether no training time is known of any job that could give these instances back."""
        return self._learned.isdisjoint(short)

    def wait(self, short: Vector) -> timedelta:
        """Return the time until this much more is free than now, for a job behind those ahead."""
        ends = self._ends
        waits = (
            ends[capacity].until(count + self.ahead.get(capacity, 0))
            for capacity, count in short.items()
            if capacity in ends
        )
        return timedelta(seconds=max(waits, default=0.0))

    def goes_ahead(self, vector: Vector) -> None:
        """Count a job that waits for these instances before those that ask from here on."""
        ahead = self.ahead
        for capacity, count in vector.items():
            ahead[capacity] = ahead.get(capacity, 0) + count

    def stopped(self, job: RunningJob) -> None:
        """Count a job that is stopped: its instances are kept for its preemptor."""
        times = chances(job, now=self.now)
        for capacity, count in job.vector.items():
            self._ends[capacity].stopped((at, count) for at in times)

    @cached_property
    def _learned(self) -> frozenset[Capacity]:
        """Capacities on which a job runs whose like has been seen to end."""
        known = (job for job in self.running if job.expected.predicted is not None)
        return frozenset({capacity for job in known for capacity in job.vector})

    @cached_property
    def _ends(self) -> dict[Capacity, _Ends]:
        ends_of: defaultdict[tuple[Capacity, int], list[float]] = defaultdict(list)
        now = self.now
        for job in self.running:
            if job.state not in ASKED_TO_STOP:
                for kind in job.held:
                    ends_of[kind] += chances(job, now=now)
        by_capacity: defaultdict[Capacity, list[tuple[int, list[float]]]] = defaultdict(list)
        for (capacity, count), ends in ends_of.items():
            by_capacity[capacity].append((count, ends))
        return {capacity: _Ends.of(kinds) for capacity, kinds in by_capacity.items()}
