"""Jobs that are yet to come, drawn from how many came so far: those that will go before the one that asks."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge

from trainmaster.jobs import JobState, Shape, epoch_ms, parse_vector
from trainmaster.ledger import month_of
from trainmaster.policy import PoolPolicy
from trainmaster.scheduling.chance import Chance
from trainmaster.scheduling.durations import USUAL_LIMIT
from trainmaster.scheduling.ordering import SIZE_WEIGHT
from trainmaster.scheduling.run_times import RunTimes, month_before, start_of_month
from trainmaster.scheduling.snapshot import WaitingJob

LEAST_WATCHED = timedelta(days=1)
"""What came in less time is taken to be all that came in it."""
NEVER = timedelta(days=60)
"""Nobody asks for what comes later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Of one pool. Each lane and priority comes at the mean rate of this month and the last, one by one.

    Jobs are counted where they complete: in the long run as many come as go.
    """

    pool: PoolPolicy
    run_times: Mapping[tuple[str, str], RunTimes]
    asking: WaitingJob
    now: datetime

    def drawn(self, seed: str) -> Iterator[WaitingJob]:
        """One future's arrivals as they come."""
        streams = [
            self._stream(stream, Chance(f"{seed}/{stream.team}/{stream.lane}/{stream.priority}"))
            for stream in self._streams()
        ]
        return merge(*streams, key=_coming)

    def _streams(self) -> "list[_Stream]":
        months = (month_of(self.now), month_before(self.now))
        begin = start_of_month(start_of_month(self.now) - timedelta(days=1))
        first = min((times.since for times in self.run_times.values()), default=self.now)
        watched = max(self.now - max(begin, first), LEAST_WATCHED)
        return [
            _Stream(
                team=team,
                lane=lane,
                shape=shape,
                priority=priority,
                every=watched / count,
                predicted=times.predicted,
            )
            for (team, lane), times in sorted(self.run_times.items())
            for priority, count in sorted(_of(months, times).items())
            if (shape := shape_of(lane)) is not None
        ]

    def _stream(self, stream: "_Stream", chance: Chance) -> Iterator[WaitingJob]:
        at, number = self.now, 0
        while at - self.now < NEVER:
            at += stream.every * -math.log(1 - chance.draw())
            number += 1
            score = self._score(stream, at)
            if score < self.asking.score or self.pool.quotas:
                yield stream.job(number, at=at, score=score)
            elif not self.pool.order.shortest_first:
                return  # those behind it come later still, and rank behind too

    def _score(self, stream: "_Stream", at: datetime) -> int:
        score = epoch_ms(at) - self.pool.boost_ms(stream.priority)
        if self.pool.order.shortest_first:
            score += SIZE_WEIGHT * (stream.predicted // timedelta(milliseconds=1))
        return score


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    team: str
    lane: str
    shape: Shape
    priority: int
    every: timedelta
    predicted: timedelta

    def job(self, number: int, *, at: datetime, score: int) -> WaitingJob:
        return WaitingJob(
            name=f"~{self.team}~{self.lane}~{self.priority}~{number}",  # '~' is in no job's name
            ver=1,
            team=self.team,
            state=JobState.PENDING,
            shapes=(self.shape,),
            priority=self.priority,
            score=score,
            submitted_at=at,
            runs_at_most=USUAL_LIMIT,
            has_checkpoint=True,
        )


def _of(months: Iterable[str], times: RunTimes) -> Counter[int]:
    """Jobs by priority."""
    return sum((Counter(times.by_month.get(month, {})) for month in months), Counter[int]())


def shape_of(lane: str) -> Shape | None:
    """What the jobs of a lane ask for: the first of their alternatives; None where the text is a digest."""
    first = lane.replace("|", ">").partition(">")[0].partition("@")[0]
    return Shape(vector=parse_vector(first)) if "=" in first else None


def _coming(job: WaitingJob) -> datetime:
    return job.submitted_at
