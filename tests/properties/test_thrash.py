"""I16: a job is not stopped for others again and again, and hardly ever while it starts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.attempts import CheckpointState
from trainmaster.core.jobs.instances import total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.recent_stops import RecentStops, after_stop
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy, Preemption, PreemptionCost

from tests.builders import NOON, minutes, pool, score_at, snapshot, waiting
from tests.properties.carrying_out import carry_out
from tests.properties.pools import always

STEP = minutes(4)
"""From one plan to the next; whoever starts trains with the next, and all of them save at each."""
BOUND = minutes(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A job that is more urgent than those which fill the pool."""

    after: int
    """Steps since the one before it."""
    trains: int
    """Steps until it ends."""
    priority: int


@dataclass(kw_only=True)
class Day:
    """A pool of jobs that never end, and of urgent ones that come and go."""

    rules: PoolPolicy
    arrivals: list[Arrival]
    world: Snapshot
    asked: dict[str, WaitingJob]
    ends: dict[str, int] = field(default_factory=dict)
    stops: dict[str, RecentStops] = field(default_factory=dict)
    begun: dict[str, datetime] = field(default_factory=dict)

    def steps(self, count: int) -> list[tuple[Preempt, Snapshot, datetime]]:
        """Return each preemption with the pool and the instant that it was decided in."""
        seen: list[tuple[Preempt, Snapshot, datetime]] = []
        due = 0
        for step in range(count):
            now = NOON + step * STEP
            due += 1
            if self.arrivals and due >= self.arrivals[0].after:
                due = 0
                self._comes(self.arrivals.pop(0), now)
            for action in plan(self.world, self.rules, now=now).actions:
                if isinstance(action, Preempt):
                    seen.append((action, self.world, now))
                self.world = carry_out(action, self.world, now=now)
            self._goes_on(now + STEP)
        return seen

    def _comes(self, arrival: Arrival, now: datetime) -> None:
        name = f"urgent{len(self.asked)}"
        score = score_at(arrival.priority, -(now - NOON) / minutes(1))
        came = waiting(name, priority=arrival.priority, submitted_at=now, score=score, has_checkpoint=True)
        self.asked[name], self.ends[name] = came, arrival.trains
        self.world = replace(self.world, waiting=(*self.world.waiting, came))

    def _goes_on(self, now: datetime) -> None:
        """Let a step pass: jobs that were stopped wait, others train and save, or are over."""
        live, back = list[RunningJob](), list[WaitingJob]()
        for job in self.world.running:
            if job.state is JobState.PREEMPTING:
                self.begun.pop(job.name, None)
                lost = timedelta() if job.training_since else now - job.claimed_at
                self.stops[job.name] = after_stop(self.stops.get(job.name), at=now, lost=lost)
                back.append(self.asked[job.name])
                continue
            since = self.begun.setdefault(job.name, now)
            if job.name in self.ends and now - since >= self.ends[job.name] * STEP:
                continue
            live.append(
                replace(
                    job,
                    state=JobState.RUNNING,
                    training_since=since,
                    stops=self.stops.get(job.name),
                    checkpoint=CheckpointState(last=now - minutes(1)),
                    expected=replace(job.expected, predicted=minutes(600)),
                )
            )
        held = total(job.vector for job in live)
        self.world = replace(self.world, running=tuple(live), waiting=(*self.world.waiting, *back), used=held)


@st.composite
def days(draw: st.DrawFn) -> Day:
    cost = PreemptionCost(longest_wait=draw(st.sampled_from([None, BOUND])))
    rules = replace(pool(3), preemption=Preemption(cost=cost, max_per_job=100))
    lows = [
        waiting(f"low{number}", minutes_ago=60 - number, has_checkpoint=True)
        for number in range(draw(st.integers(3, 6)))
    ]
    arrivals = st.builds(
        Arrival,
        after=st.integers(1, 5),
        trains=st.integers(1, 4),
        priority=st.sampled_from([100, 200]),
    )
    coming = draw(st.lists(arrivals, min_size=4, max_size=14))
    return Day(rules=rules, arrivals=coming, world=snapshot(*lows), asked={job.name: job for job in lows})


def is_spared(job: RunningJob, now: datetime) -> bool:
    """Tell by its own count whether a stop would be in vain, or one of many."""
    if job.training_since is None or now - job.training_since < minutes(5):
        return True
    protected = timedelta()
    if job.stops is not None and now - job.stops.at <= timedelta(days=1):
        protected = minutes(15) * 2 ** (job.stops.count - 1)
    return now - job.training_since < protected


def could_stop(action: Preempt, running: Sequence[RunningJob]) -> list[RunningJob]:
    """Return those of the least priority that it may stop: each of them is enough."""
    outranked = [
        job for job in running if job.state is JobState.RUNNING and job.priority < action.job.priority
    ]
    least = min(job.priority for job in outranked)
    return [job for job in outranked if job.priority == least]


@always
@given(days())
def test_I16_a_start_is_not_undone_while_another_job_of_its_priority_can_make_room(day: Day) -> None:
    """Jobs of one instance that saved a minute ago: whoever is settled and not protected goes first."""
    for action, world, now in day.steps(60):
        (victim,) = action.victims
        candidates = could_stop(action, world.running)
        if victim.priority == candidates[0].priority and is_spared(victim, now):
            assert all(is_spared(job, now) for job in candidates)
