"""The jobs that wait in one drawn future, in lanes: one for each team and what its jobs ask for."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from itertools import chain
from operator import attrgetter

from trainmaster.core.jobs.instances import lane_text
from trainmaster.core.planning.candidates import HEADS
from trainmaster.core.planning.snapshot import WaitingJob

Lane = tuple[str, str]
"""A team, and the text of what its jobs ask for."""

_rank = attrgetter("rank")


class FutureQueue:
    def __init__(self, waiting: Iterable[WaitingJob]) -> None:
        self._lanes: dict[Lane, list[WaitingJob]] = {}
        self.names: set[str] = set()
        for job in waiting:
            self.add(job)

    def add(self, job: WaitingJob) -> None:
        insort(self._lanes.setdefault(_lane(job), []), job, key=_rank)
        self.names.add(job.name)

    def remove(self, job: WaitingJob) -> None:
        lane = self._lanes[_lane(job)]
        lane.remove(job)
        if not lane:
            del self._lanes[_lane(job)]
        self.names.discard(job.name)

    def count_before(self, job: WaitingJob) -> int:
        """Count the jobs that go before this one, which need not wait here itself."""
        return sum(bisect_left(lane, job.rank, key=_rank) for lane in self._lanes.values())

    def heads(self) -> tuple[WaitingJob, ...]:
        """Return the first jobs of each lane, as many as one plan can look at."""
        return tuple(chain.from_iterable(lane[:HEADS] for lane in self._lanes.values()))


def _lane(job: WaitingJob) -> Lane:
    return (job.team, lane_text(job.shapes, job.choice))
