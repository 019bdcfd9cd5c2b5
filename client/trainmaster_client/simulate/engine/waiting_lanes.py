"""The queue of one pool as a pass reads it: the heads of each lane, in their turn."""

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain
from operator import attrgetter
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
    heads_read: tuple[WaitingJob, ...] | None = ()
    """Heads of all lanes; None if they have changed since."""

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def add(self, job: WaitingJob) -> None:
        key = (job.team, lane_text(job.shapes, job.choice))
        insort(self.lanes.setdefault(key, []), job, key=_rank)
        self.names[job.name] = (key, job)
        self._changed(key)

    def remove(self, name: str) -> None:
        key, job = self.names.pop(name)
        lane = self.lanes[key]
        del lane[bisect_left(lane, job.rank, key=_rank)]
        self._changed(key)
        if not lane:
            del self.lanes[key]

    def _changed(self, key: LaneKey) -> None:
        self.known_heads.pop(key, None)
        self.heads_read = None

    def heads(self) -> tuple[WaitingJob, ...]:
        """Return the first jobs of every lane."""
        if self.heads_read is None:
            for key in self.lanes.keys() - self.known_heads.keys():
                self.known_heads[key] = tuple(self.lanes[key][:HEADS])
            self.heads_read = tuple(chain.from_iterable(self.known_heads.values()))
        return self.heads_read

    def first_in_turn(self, most: int) -> tuple[WaitingJob, ...]:
        """Return the first jobs of the queue in their turn, at most so many."""
        return tuple(nsmallest(most, (job for _, job in self.names.values()), key=_rank))

    def fork(self) -> Self:
        """Copy the lanes to go their own way."""
        return type(self)(
            lanes={key: list(lane) for key, lane in self.lanes.items()},
            known_heads=dict(self.known_heads),
            names=dict(self.names),
            heads_read=self.heads_read,
        )


_rank = attrgetter("rank")
