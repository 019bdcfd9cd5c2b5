"""Of any pool with several preemptors: those that stop are enough for all, and none of them stops in vain."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.planning.actions import Plan, Preempt, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.planning.wait_reasons import MAKE_ROOM
from trainmaster.core.policy import PoolPolicy, Preemption, PreemptionCost

from tests.builders import NOON, A, B, minutes, of, pool, running, snapshot, waiting
from tests.properties.pools import always

SIZES = st.sampled_from([of(1), of(1), of(1), of(2), of(4), of(1, B)])
ASKED = st.sampled_from([of(1), of(2), of(2), of(3), {**of(1), **of(1, B)}])
TYPES = (Capacity(A), Capacity(B))


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """A full pool in which several urgent jobs wait."""

    snapshot: Snapshot
    pool: PoolPolicy

    @property
    def decided(self) -> Plan:
        return plan(self.snapshot, self.pool, now=NOON)

    def left_over(self, decided: Plan) -> dict[Capacity, int]:
        """Count what nobody uses once all that stops has ended and all that can start has started."""
        preemptions = [action for action in decided.actions if isinstance(action, Preempt)]
        stopped = {victim.name for action in preemptions for victim in action.victims}
        served = {action.job.name for action in decided.actions if isinstance(action, Preempt | Start)}
        # Jobs that get what others leave were given no action.
        served |= {name for name, reason in decided.reasons.items() if reason.message.endswith(MAKE_ROOM)}
        users = [job.vector for job in self.snapshot.running if job.name not in stopped]
        users += [job.vector for job in self.snapshot.waiting if job.name in served]
        return {
            kind: self.pool.capacity.get(kind.instance_type, 0) - sum(vector.get(kind, 0) for vector in users)
            for kind in TYPES
        }


@st.composite
def running_jobs(draw: st.DrawFn, number: int) -> RunningJob:
    age = draw(st.integers(1, 90))
    return running(
        f"r{number}",
        vector=draw(SIZES),
        priority=draw(st.integers(0, 1)),
        minutes_ago=age,
        training_since=NOON - minutes(age),
        last_checkpoint=NOON - minutes(draw(st.integers(0, age))),
    )


@st.composite
def crowds(draw: st.DrawFn) -> Crowd:
    live = [draw(running_jobs(number)) for number in range(draw(st.integers(3, 7)))]
    urgent: list[WaitingJob] = [
        waiting(f"w{number}", vector=draw(ASKED), priority=draw(st.integers(2, 4)), minutes_ago=number)
        for number in range(draw(st.integers(2, 4)))
    ]
    counts = {kind: sum(job.vector.get(kind, 0) for job in live) for kind in TYPES}
    rules = Preemption(preempt_delay=minutes(0), cost=PreemptionCost(enabled=draw(st.booleans())))
    full = replace(
        pool(0),
        capacity={kind.instance_type: count + draw(st.integers(0, 1)) for kind, count in counts.items()},
        preemption=rules,
    )
    return Crowd(snapshot=snapshot(*live, *urgent), pool=full)


@always
@given(crowds())
def test_those_that_stop_are_enough_for_all_preemptors_of_the_plan(crowd: Crowd) -> None:
    assert min(crowd.left_over(crowd.decided).values()) >= 0


@always
@given(crowds())
def test_no_job_is_stopped_whose_instances_nobody_would_use(crowd: Crowd) -> None:
    decided = crowd.decided
    left_over = crowd.left_over(decided)
    for action in decided.actions:
        if isinstance(action, Preempt):
            for victim in action.victims:
                assert any(left_over[kind] < count for kind, count in victim.vector.items()), victim.name
