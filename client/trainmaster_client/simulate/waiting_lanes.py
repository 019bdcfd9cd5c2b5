"""The queue of one pool as a pass reads it: the heads of each lane, in their turn."""

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

from trainmaster.core.jobs.instances import lane_text
from trainmaster.core.planning.candidates import HEADS
from trainmaster.core.planning.snapshot import WaitingJob

LaneKey = tuple[str, str]
"""Team, and what its jobs ask for."""


@dataclass(slots=True, kw_only=True)
class Lanes:
    """Waiting jobs by lane. What a pass sees of a lane is made again only when its heads have changed."""

    lanes: dict[LaneKey, list[WaitingJob]] = field(default_factory=dict)
    known_heads: dict[LaneKey, tuple[WaitingJob, ...]] = field(default_factory=dict)
    names: dict[str, tuple[LaneKey, WaitingJob]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def add(self, job: WaitingJob) -> None:
        key = (job.team, lane_text(job.shapes, job.choice))
        insort(self.lanes.setdefault(key, []), job, key=_rank)
        self.names[job.name] = (key, job)
        self.known_heads.pop(key, None)

    def remove(self, name: str) -> None:
        key, job = self.names.pop(name)
        lane = self.lanes[key]
        del lane[bisect_left(lane, job.rank, key=_rank)]
        self.known_heads.pop(key, None)
        if not lane:
            del self.lanes[key]

    def heads(self) -> tuple[WaitingJob, ...]:
        """The first of every lane."""
        for key in self.lanes.keys() - self.known_heads.keys():
            self.known_heads[key] = tuple(self.lanes[key][:HEADS])
        return tuple(chain.from_iterable(self.known_heads.values()))

    def ahead_of(self, name: str) -> tuple[WaitingJob, ...]:
        """Everybody who waits and goes before the job, in turn; the job itself comes last."""
        _, mine = self.names[name]
        return tuple(sorted((job for _, job in self.names.values() if job.rank <= mine.rank), key=_rank))

    def fork(self) -> Self:
        """A copy that goes its own way."""
        return type(self)(
            lanes={key: list(lane) for key, lane in self.lanes.items()},
            known_heads=dict(self.known_heads),
            names=dict(self.names),
        )


def _rank(job: WaitingJob) -> tuple[int, str]:
    return job.rank
