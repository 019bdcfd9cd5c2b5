"""Future jobs, drawn at the rates of past ones: only those that will go before the job that is estimated."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge

from trainmaster.core.costs.ledger import month_of
from trainmaster.core.forecast.durations import USUAL_LIMIT, LaneKey
from trainmaster.core.forecast.run_times import RunTimes, month_before, start_of_month
from trainmaster.core.forecast.sampling import Chance
from trainmaster.core.jobs.instances import Shape, parse_vector
from trainmaster.core.jobs.model import JobState, epoch_ms
from trainmaster.core.planning.order import behind_ms
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.core.policy import PoolPolicy

LEAST_WATCHED = timedelta(days=1)
"""Shortest time that arrivals are counted over, so that a rate from less is not exaggerated."""
NEVER = timedelta(days=60)
"""Horizon of arrivals: no estimate reaches further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Future arrivals in one pool: one by one, each lane and priority at its mean rate of two months.

    Jobs are counted where they complete: in the long run as many come as go.
    """

    pool: PoolPolicy
    run_times: Mapping[LaneKey, RunTimes]
    saving: float
    """Share of jobs that write checkpoints."""
    asking: WaitingJob
    now: datetime

    def drawn(self, seed: str, *, share: float = 1.0) -> Iterator[WaitingJob]:
        """Yield the arrivals of one future in the order of time, or this share of them."""
        streams = [
            self._stream(stream, Chance(f"{seed}/{stream.name}"))
            for (team, lane), times in sorted(self.run_times.items())
            for stream in self._streams(team, lane, times)
        ]
        coming = merge(*streams, key=_coming)
        chance = Chance(f"{seed}/share")
        # Dropping arrivals one by one keeps the rest a Poisson process, of a lower rate.
        return coming if share >= 1 else (job for job in coming if chance.draw() < share)

    def _streams(self, team: str, lane: str, times: RunTimes) -> "Iterator[_Stream]":
        shape = shape_of(lane)
        if shape is None:
            return
        for priority, count in sorted(_counts(times, now=self.now).items()):
            yield _Stream(
                team=team,
                lane=lane,
                shape=shape,
                priority=priority,
                predicted=times.predicted,
                every=self._watched / count,
            )

    @property
    def _watched(self) -> timedelta:
        """Time in which the counted jobs completed."""
        begin = start_of_month(start_of_month(self.now) - timedelta(days=1))
        first = min(times.since for times in self.run_times.values())
        return max(self.now - max(begin, first), LEAST_WATCHED)

    def _stream(self, stream: "_Stream", chance: Chance) -> Iterator[WaitingJob]:
        for number, at in enumerate(stream.times(self.now, chance)):
            score = self._score(stream, at)
            # With quotas a job that ranks behind may still go first: covered jobs go before borrowers.
            if score < self.asking.score or self.pool.quotas:
                yield stream.job(number, at=at, score=score, saves=chance.draw() < self.saving)
            elif not self.pool.order.shortest_first:
                return  # those behind it come later still, and rank behind too

    def _score(self, stream: "_Stream", at: datetime) -> int:
        score = epoch_ms(at) - self.pool.boost_ms(stream.priority)
        if self.pool.order.shortest_first:
            score += behind_ms(stream.predicted)
        return score


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    team: str
    lane: str
    shape: Shape
    priority: int
    predicted: timedelta
    every: timedelta
    """Mean time between two arrivals."""

    @property
    def name(self) -> str:
        return f"~{self.team}~{self.lane}~{self.priority}"  # '~' is in no job's name

    def times(self, now: datetime, chance: Chance) -> Iterator[datetime]:
        at = now
        # Gaps of a Poisson process are exponential: many short ones, few long ones.
        while (at := at + self.every * -math.log(1 - chance.draw())) < now + NEVER:
            yield at

    def job(self, number: int, *, at: datetime, score: int, saves: bool) -> WaitingJob:
        return WaitingJob(
            name=f"{self.name}~{number}",
            ver=1,
            team=self.team,
            state=JobState.PENDING,
            shapes=(self.shape,),
            priority=self.priority,
            score=score,
            submitted_at=at,
            runs_at_most=USUAL_LIMIT,
            has_checkpoint=saves,
        )


def _counts(times: RunTimes, *, now: datetime) -> Counter[int]:
    """Count the completed jobs of this month and the last by priority."""
    months = (month_of(now), month_before(now))
    return sum((Counter(times.by_month.get(month, {})) for month in months), Counter[int]())


def shape_of(lane: str) -> Shape | None:
    """Return the first alternative that the jobs of a lane ask for.

    None where the lane's text is a digest.
    """
    first = lane.replace("|", ">").partition(">")[0].partition("@")[0]
    avoids = True if lane.endswith("~") else None
    return Shape(vector=parse_vector(first), avoids_plans=avoids) if "=" in first else None


def _coming(job: WaitingJob) -> datetime:
    return job.submitted_at
