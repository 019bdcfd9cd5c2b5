"""Random queues behind a running elastic job, each played twice: with growths and without.

Jobs end when they like before their run time is over. The elastic job says truly how far it has come, and
trains as fast at a width as it was seen to. Then whoever waits when it grows starts no later than without.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import log2
from random import Random

from trainmaster.core.jobs.elastic_state import TrainingProgress
from trainmaster.core.jobs.instances import Shape, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.run_time import END_SLACK
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.actions import Action, Grow, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy, Preemption
from trainmaster.core.policy.pool_elastic import Elastic

from tests.builders import NOON, A, minutes, of, running, snapshot, waiting
from tests.properties.carrying_out import carry_out

CAPACITY = 10
STEP, STOPS, STARTS = minutes(2), minutes(2), minutes(4)
WIDTHS = Widths(counts=(2, 4, 8))
SHAPES = tuple(Shape(vector=of(count)) for count in reversed(WIDTHS.counts))
STEPS = 40_000
RUN_TIME = timedelta(hours=24)
"""The elastic job's, at its largest width."""
NEVER = timedelta(days=365)


@dataclass(kw_only=True)
class Elasticity:
    """The elastic job's training: how far it has come, and when it was last asked for more."""

    speeds: dict[str, int]
    """Steps in 1,000 seconds, by width."""
    done: float = 0
    used: timedelta = timedelta()
    """Of its run time, as at the largest width."""
    resized_at: datetime | None = None

    def trains(self, job: RunningJob, now: datetime) -> None:
        if job.training_since is not None and job.state is JobState.RUNNING and job.training_since < now:
            (width,) = job.vector.values()
            self.done += self.speeds[str(width)] * STEP.total_seconds() / 1000
            self.used += STEP * width / WIDTHS.largest

    def seen(self, job: RunningJob, now: datetime) -> RunningJob:
        progress = TrainingProgress(at=now, step=int(self.done), steps=STEPS, speeds=self.speeds)
        return replace(job, progress=progress)


@dataclass(kw_only=True)
class Day:
    pool: Snapshot
    rules: PoolPolicy
    lengths: dict[str, timedelta]
    """Time that each rigid job really trains."""
    elastic: Elasticity
    now: datetime = NOON
    ends: dict[str, datetime] = field(default_factory=dict)
    starts: dict[str, datetime] = field(default_factory=dict)
    waited: list[tuple[str, ...]] = field(default_factory=list)
    """Names of those that waited at each growth, in their order."""

    def play(self) -> "Day":
        while self.pool.waiting and self.now < NOON + timedelta(days=6):
            self._step()
        assert not self.pool.waiting, "somebody never started"
        return self

    def _step(self) -> None:
        for action in plan(self.pool, self.rules, now=self.now).actions:
            self._take(action)
        self.now += STEP
        for job in self.pool.running:
            if job.name == "elastic":
                self.elastic.trains(job, self.now)
        self._ended()

    def _take(self, action: Action) -> None:
        if isinstance(action, Grow):
            queue = sorted(self.pool.waiting, key=lambda job: job.rank)
            self.waited.append(tuple(job.name for job in queue))
            self.elastic.resized_at = self.now
        self.pool = carry_out(action, self.pool, now=self.now)
        if isinstance(action, Start):
            self.starts.setdefault(action.job.name, self.now)
            self._started(action.job)

    def _started(self, job: WaitingJob) -> None:
        at = self.now + STARTS
        live = next(running for running in self.pool.running if running.name == job.name)
        longest = job.runs_at_most
        if job.name == "elastic":
            (width,) = live.vector.values()
            longest = (RUN_TIME - self.elastic.used) * WIDTHS.largest / width
        else:
            self.ends[job.name] = at + self.lengths[job.name]
        expected = ExpectedRun(at_most=longest, ends_by=at + longest + END_SLACK)
        resized_at = self.elastic.resized_at if job.widths is not None else None
        training = replace(
            live, widths=job.widths, training_since=at, expected=expected, resized_at=resized_at
        )
        self.pool = replace(
            self.pool, running=tuple(training if other is live else other for other in self.pool.running)
        )

    def _ended(self) -> None:
        over = {name for name, at in self.ends.items() if at <= self.now}
        back: tuple[WaitingJob, ...] = ()
        for job in self.pool.running:
            if job.name == "elastic" and self.elastic.done >= STEPS:
                over.add(job.name)
            elif job.state is JobState.PREEMPTING and self.now - (self.elastic.resized_at or NOON) >= STOPS:
                over.add(job.name)
                back = (_elastic(JobState.PREEMPTED),)
        live = tuple(
            self.elastic.seen(job, self.now) if job.name == "elastic" else job
            for job in self.pool.running
            if job.name not in over
        )
        used = total(job.vector for job in live)
        self.pool = replace(self.pool, running=live, used=used, waiting=(*self.pool.waiting, *back))


def _elastic(state: JobState) -> WaitingJob:
    """The elastic job, when it has stopped for more instances: ahead of all, as it was there before them."""
    return waiting(
        "elastic",
        shapes=SHAPES,
        widths=WIDTHS,
        minutes_ago=600,
        has_checkpoint=True,
        runs_at_most=RUN_TIME,
        state=state,
    )


def day(seed: int, *, grows: bool) -> Day:
    """Some jobs run, others wait; all is drawn by the seed alone."""
    random = Random(seed)
    width = random.choice([2, 4])
    scales = random.choice([1.5, 1.8, 1.95])
    least_speed = random.randint(300, 2000)
    speeds = {str(count): round(least_speed * scales ** log2(count / 2)) for count in WIDTHS.counts}
    others, lengths, ends = list[RunningJob](), dict[str, timedelta](), dict[str, datetime]()
    left = CAPACITY - width
    while left and random.random() < 0.7:
        name, count = f"old{len(others)}", random.randint(1, left)
        run_time = timedelta(hours=random.randint(1, 24))
        expected = ExpectedRun(at_most=run_time, ends_by=NOON + run_time + END_SLACK)
        others.append(running(name, n=count, expected=expected, minutes_ago=0))
        ends[name] = NOON + run_time * random.uniform(0.02, 1)
        left -= count
    queue = [
        waiting(
            f"new{number}",
            n=random.choice([3, 5, 7, 8, 9, 10, 10]),
            runs_at_most=timedelta(hours=random.randint(1, 24)),
            minutes_ago=60 - number,
            priority=random.choice([0, 0, 0, 1]),
        )
        for number in range(random.randint(1, 3))
    ]
    lengths = {job.name: job.runs_at_most * random.uniform(0.02, 1) for job in queue}
    at_most = RUN_TIME * WIDTHS.largest / width
    elastic = running(
        "elastic",
        n=width,
        widths=WIDTHS,
        minutes_ago=0,
        expected=ExpectedRun(at_most=at_most, ends_by=NOON + at_most + END_SLACK),
    )
    training = Elasticity(speeds=speeds, done=STEPS * random.uniform(0, 0.9))
    least_gain = Elastic() if grows else Elastic(min_gain=NEVER)
    rules = PoolPolicy(
        name="main", capacity={A: CAPACITY}, elastic=least_gain, preemption=Preemption(enabled=False)
    )
    first = snapshot(training.seen(elastic, NOON), *others, *queue)
    return Day(pool=first, rules=rules, lengths=lengths, elastic=training, ends=ends)


SEEDS = range(100)


def test_nobody_who_waits_starts_later_for_a_growth() -> None:
    beside, earlier = 0, 0
    for seed in SEEDS:
        grown, rigid = day(seed, grows=True).play(), day(seed, grows=False).play()
        for names in filter(None, grown.waited):
            later = {name: grown.starts[name] - rigid.starts[name] for name in names}
            assert max(later.values()) <= timedelta(), f"seed {seed}: {later}"
            beside += 1
            earlier += later[names[0]] < timedelta()
    assert beside > 10, "no job grew beside others: the days show nothing"
    assert earlier > 10, "no growth let the first of the queue start earlier: the days show nothing"
