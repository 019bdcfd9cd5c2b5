"""Random windows of two training plans, minute by minute: nothing runs too late or beyond the capacity."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

import pytest
from trainmaster.core.jobs.instances import Capacity, Shape, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.run_time import END_SLACK
from trainmaster.core.planning.actions import Drain, Preempt, Start
from trainmaster.core.planning.plan_reasons import PlanReasons
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.policy import PoolPolicy, parse_policy
from trainmaster.core.policy.plan_windows import ENDS_BEFORE, PlanSeen, Window

from tests.builders import NOON, A, minutes, running, snapshot, waiting

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/"
STOPS_WITHIN = minutes(2)
"""SageMaker's time from StopTrainingJob to SIGKILL."""
LONGEST = minutes(60 * 14)
DRAINS = {"5m": 2, "10m": 5}
"""Minutes by which the clock may be off, by ``drain``."""


@dataclass(slots=True, kw_only=True)
class Life:
    """A job of the test: how long it runs, and whether it saves."""

    job: WaitingJob
    length: timedelta
    left: timedelta
    stops_at: datetime | None = None
    since: datetime | None = None
    drained: int = 0
    lost: timedelta = field(default_factory=timedelta)


@dataclass(slots=True, kw_only=True)
class Trial:
    random: Random
    pool: PoolPolicy
    plans: dict[str, PlanSeen]
    off: timedelta
    """By how much our clock is late."""
    waits: dict[str, Life]
    on_plans: int = 0
    """Starts on plans."""
    runs: dict[str, tuple[Life, RunningJob]] = field(default_factory=dict)

    def minute(self, now: datetime) -> None:
        """One minute of the true time: ends first, then a pass by our own clock."""
        for name, (life, _) in list(self.runs.items()):
            assert life.since is not None
            if life.stops_at is not None and life.stops_at <= now:
                self._stopped(life, now)
            elif now - life.since >= life.left:
                del self.runs[name]
            else:
                continue
            self.runs.pop(name, None)
        ours = now - self.off
        pool = self.pool.with_plans(self.plans, now=ours, until=ours + LONGEST)
        for _ in range(3):
            if not self._pass(pool, now, ours):
                break
        self._check(now)

    def _stopped(self, life: Life, now: datetime) -> None:
        assert life.since is not None
        if life.job.has_checkpoint:
            life.left -= now - life.since
        else:
            life.lost += now - life.since
        life.since = life.stops_at = None
        self.waits[life.job.name] = life

    def _pass(self, pool: PoolPolicy, now: datetime, ours: datetime) -> bool:
        jobs: list[WaitingJob | RunningJob] = [
            *(life.job for life in self.waits.values()),
            *(job for _, job in self.runs.values()),
        ]
        decided = plan(snapshot(*jobs), pool, now=ours)
        reasons = dict(decided.reasons) if isinstance(decided.reasons, PlanReasons) else decided.reasons
        started = False
        for action in decided.actions:
            if isinstance(action, Start):
                self._start(action, now, ours)
                started = True
            elif isinstance(action, Drain):
                life, job = self.runs[action.job.name]
                life.stops_at, life.drained = now + STOPS_WITHIN, life.drained + 1
                self.runs[job.name] = life, replace(job, state=JobState.PREEMPTING, stop_sent=True)
            else:
                assert not isinstance(action, Preempt), "all have one priority"
        if not started:
            assert reasons.keys() == self.waits.keys(), "each job that waits has a reason"
        return started

    def _start(self, action: Start, now: datetime, ours: datetime) -> None:
        life = self.waits.pop(action.job.name)
        life.since = now
        self.on_plans += action.shape.is_on_plan
        entry = running(
            life.job.name,
            vector=action.shape.vector,
            has_checkpoint=life.job.has_checkpoint,
            preemptible=life.job.preemptible is not False,
            claimed_at=ours,
            training_since=ours,
            ends_by=ours + life.job.runs_at_most + END_SLACK,
        )
        self.runs[entry.name] = life, entry

    def _check(self, now: datetime) -> None:
        used = total(job.vector for _, job in self.runs.values())
        assert used.get(Capacity(A), 0) <= self.pool.capacity[A]
        for seen in self.plans.values():
            open_now = sum(
                window.instances for window in seen.windows if window.begin <= now < window.end - ENDS_BEFORE
            )
            early = sum(
                window.instances
                for window in seen.windows
                if window.begin <= now - self.off < window.end - ENDS_BEFORE
            )
            assert used.get(seen.capacity_key, 0) <= max(open_now, early if self.off < minutes(0) else 0)


def windows(random: Random) -> Iterator[Window]:
    at = NOON + minutes(random.randrange(0, 90))
    for _ in range(random.randrange(1, 4)):
        end = at + minutes(random.randrange(75, 300))
        yield Window(begin=at, end=end, instances=random.randrange(1, 5))
        at = end + minutes(random.randrange(0, 120))


def lives(random: Random) -> Iterator[Life]:
    for number in range(random.randrange(6, 20)):
        length = minutes(random.randrange(10, 240))
        kind = random.choice(("", "", ":plan"))
        count = random.randrange(1, 3)
        shape = Shape(vector={Capacity.parse(A + kind): count}, avoids_plans=random.random() < 0.15 or None)
        job = waiting(
            f"job{number:02}",
            shapes=(shape,),
            minutes_ago=random.randrange(0, 60),
            runs_at_most=length + minutes(random.randrange(0, 120)),
            has_checkpoint=random.random() < 0.6,
            preemptible=None if random.random() < 0.8 else False,
        )
        yield Life(job=job, length=length, left=length)


@pytest.mark.parametrize("drain", DRAINS)
@pytest.mark.parametrize("seed", range(6))
def test_nothing_runs_after_a_window_and_no_step_is_lost(seed: int, drain: str) -> None:
    random = Random(f"{seed}{drain}")
    entries = [{"arn": ARN + name, "drain": drain} for name in ("spring", "autumn")]
    document = {"pools": [{"name": "main", "capacity": {A: random.randrange(0, 3)}, "plans": entries}]}
    (pool,) = parse_policy(document).pools
    plans = {}
    for entry in entries:
        parts = tuple(windows(random))
        most = max(window.instances for window in parts)
        plans[entry["arn"]] = PlanSeen(
            arn=entry["arn"], status="Active", instance_type=A, total=most, windows=parts
        )
    jobs = {life.job.name: life for life in lives(random)}
    trial = Trial(
        random=random,
        pool=pool,
        plans=plans,
        off=minutes(random.choice((-1, 0, 1)) * DRAINS[drain]),
        waits=dict(jobs),
    )
    for minute in range(int(LONGEST / minutes(1))):
        trial.minute(NOON + minutes(minute))
    assert trial.on_plans, "else nothing was tried"
    assert not any(life.lost for life in jobs.values()), "only jobs that save are stopped"
    assert not any(life.drained for life in jobs.values() if life.job.preemptible is False)
