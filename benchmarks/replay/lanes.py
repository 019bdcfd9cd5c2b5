"""The queue of one pool as a pass reads it: the heads of each lane, in their turn."""

from bisect import bisect_left, insort
from itertools import chain

from trainmaster.core.planning.candidates import HEADS
from trainmaster.core.planning.snapshot import WaitingJob

LaneKey = tuple[str, str]
"""Team, and what its jobs ask for."""


class Lanes:
    """Waiting jobs by lane. What a pass sees of a lane is made anew only when its heads have changed."""

    def __init__(self) -> None:
        self._lanes: dict[LaneKey, list[WaitingJob]] = {}
        self._heads: dict[LaneKey, tuple[WaitingJob, ...]] = {}
        self._names: dict[str, tuple[LaneKey, WaitingJob]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, key: LaneKey, job: WaitingJob) -> None:
        insort(self._lanes.setdefault(key, []), job, key=_rank)
        self._names[job.name] = (key, job)
        self._heads.pop(key, None)

    def remove(self, name: str) -> None:
        key, job = self._names.pop(name)
        lane = self._lanes[key]
        del lane[bisect_left(lane, job.rank, key=_rank)]
        self._heads.pop(key, None)
        if not lane:
            del self._lanes[key]

    def heads(self) -> tuple[WaitingJob, ...]:
        """The first of every lane."""
        for key in self._lanes.keys() - self._heads.keys():
            self._heads[key] = tuple(self._lanes[key][:HEADS])
        return tuple(chain.from_iterable(self._heads.values()))

    def ahead_of(self, name: str) -> tuple[WaitingJob, ...]:
        """Everybody who waits and goes before the job, in turn; the job itself comes last."""
        _, mine = self._names[name]
        return tuple(sorted((job for _, job in self._names.values() if job.rank <= mine.rank), key=_rank))


def _rank(job: WaitingJob) -> tuple[int, str]:
    return job.rank
