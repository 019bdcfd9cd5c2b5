"""Elastic jobs beside others over a day: what a plan does to them is carried out, pass after pass.

Short jobs come in, urgent ones among them; stops take two minutes, starts four. The pool is never
overcommitted, no job runs below its least width, none grows within the snooze, and a pass grows one at most.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

import pytest
from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.actions import Action, Grow, Preempt, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy

from tests.builders import NOON, A, minutes, of, snapshot, waiting
from tests.properties.carrying_out import carry_out

STOPS, STARTS = minutes(2), minutes(4)
LOOK_EVERY = minutes(5)
"""A pass comes as soon as the pool has changed, else this often."""
WIDTHS = [Widths(counts=(1, 2, 4)), Widths(counts=(2, 3, 4)), Widths(counts=(2, 4, 8))]
CAPACITY = 12


@dataclass(kw_only=True)
class Day:
    """One pool whose plans are carried out."""

    random: Random
    pool: Snapshot
    asked_as: dict[str, WaitingJob]
    planned: Snapshot | None = None
    """Pool as the last pass left it; None: there was none."""
    now: datetime = NOON
    arrivals: float = 1 / 45
    """Chance that a short job comes in within a minute."""
    ends: dict[str, datetime] = field(default_factory=dict)
    rules: PoolPolicy = field(default_factory=lambda: PoolPolicy(name="main", capacity={A: CAPACITY}))
    resizes: defaultdict[str, list[tuple[datetime, type]]] = field(default_factory=lambda: defaultdict(list))
    widths: Counter[int] = field(default_factory=Counter)

    def minute(self) -> None:
        self.now += minutes(1)
        self._ended()
        if self.random.random() < self.arrivals:
            self._arrives()
        if self.pool is self.planned and (self.now - NOON) % LOOK_EVERY:
            return
        self._passes()
        self._checked()

    def _passes(self) -> None:
        self.planned = self.pool
        actions = plan(self.pool, self.rules, now=self.now).actions
        assert sum(isinstance(action, Grow) for action in actions) <= 1
        for action in actions:
            self._take(action)

    def _take(self, action: Action) -> None:
        self.pool = carry_out(action, self.pool, now=self.now)
        if isinstance(action, Start):
            self.asked_as[action.job.name] = action.job
            self._started(action.job)
        elif isinstance(action, Preempt):
            for victim in action.victims:
                self.ends[victim.name] = self.now + STOPS
                if victim.name in action.kept:
                    self.resizes[victim.name].append((self.now, Preempt))
        elif isinstance(action, Grow):
            self.ends[action.job.name] = self.now + STOPS
            self.resizes[action.job.name].append((self.now, Grow))

    def _started(self, job: WaitingJob) -> None:
        live = next(running for running in self.pool.running if running.name == job.name)
        changes = [at for at, _ in self.resizes[job.name]]
        training = replace(
            live,
            widths=job.widths,
            training_since=self.now + STARTS,
            expected=ExpectedRun(at_most=timedelta(hours=48)),
            resized_at=max(changes, default=None),
        )
        running = tuple(training if other is live else other for other in self.pool.running)
        self.pool = replace(self.pool, running=running)
        if job.widths is None:
            self.ends[job.name] = self.now + minutes(self.random.randint(8, 40))

    def _arrives(self) -> None:
        urgent = self.random.random() < 0.4
        name = f"short{len(self.asked_as)}"
        ago = -(self.now - NOON) / minutes(1)
        job = waiting(name, priority=9 * urgent, n=self.random.randint(1, 3), minutes_ago=ago)
        self.asked_as[name] = job
        self.pool = replace(self.pool, waiting=(*self.pool.waiting, job))

    def _ended(self) -> None:
        over = {name for name, at in self.ends.items() if at <= self.now}
        if not over:
            return
        live = tuple(job for job in self.pool.running if job.name not in over)
        back = [
            replace(self.asked_as[job.name], state=JobState.PREEMPTED)
            for job in self.pool.running
            if job.name in over and job.state is JobState.PREEMPTING
        ]
        used: dict[Capacity, int] = {}
        for job in live:
            for capacity, count in job.vector.items():
                used[capacity] = used.get(capacity, 0) + count
        for name in over:
            del self.ends[name]
        queue = (*self.pool.waiting, *back)
        names = {job.name for job in queue}
        gone = frozenset(hold.preemptor for hold in self.pool.holds) - names
        self.pool = replace(self.pool, running=live, used=used, waiting=queue, gone_preemptors=gone)

    def _checked(self) -> None:
        assert sum(sum(job.vector.values()) for job in self.pool.running) <= CAPACITY
        for job in self.pool.running:
            if job.widths is not None:
                assert sum(job.vector.values()) in job.widths.counts
                self.widths[sum(job.vector.values())] += 1


def day(seed: int) -> Day:
    jobs = [
        waiting(
            f"elastic{number}",
            shapes=tuple(Shape(vector=of(count)) for count in reversed(widths.counts)),
            widths=widths,
            minutes_ago=90 - number,
            has_checkpoint=True,
        )
        for number, widths in enumerate(WIDTHS)
    ]
    return Day(random=Random(seed), pool=snapshot(*jobs), asked_as={job.name: job for job in jobs})


@pytest.mark.parametrize("seed", range(2))
def test_R3_a_day_of_short_jobs_beside_elastic_ones_thrashes_nobody(seed: int) -> None:
    world = day(seed)
    for _ in range(24 * 60):
        world.minute()
    changes = [change for resizes in world.resizes.values() for change in resizes]
    assert sum(kind is Grow for _, kind in changes) > 2, "nothing grew: the day shows nothing"
    assert sum(kind is Preempt for _, kind in changes) > 2, "nothing shrank: the day shows nothing"
    assert len(world.widths) > 2
    for resizes in world.resizes.values():
        for at, kind in resizes:
            earlier = [other for other, _ in resizes if other < at]
            assert kind is not Grow or all(at - other >= minutes(30) for other in earlier)


def test_R1_a_crash_between_stop_and_restart_leaves_its_room() -> None:
    """While the stop goes on further passes change nothing, and then both start in what is theirs."""
    world = day(3)
    world.arrivals = 0
    for _ in range(10):
        world.minute()
    urgent = waiting("urgent", priority=99, n=2, minutes_ago=0)
    world.asked_as["urgent"] = urgent
    world.pool = replace(world.pool, waiting=(*world.pool.waiting, urgent))
    world.minute()
    (shrunk,) = [name for name, resizes in world.resizes.items() if resizes]
    assert sorted(hold.preemptor for hold in world.pool.holds) == sorted([shrunk, "urgent"])
    world.minute()
    assert sorted(hold.preemptor for hold in world.pool.holds) == sorted([shrunk, "urgent"])
    world.minute()
    live: dict[str, RunningJob] = {job.name: job for job in world.pool.running}
    assert {shrunk, "urgent"} <= live.keys()
    assert world.pool.holds == ()
