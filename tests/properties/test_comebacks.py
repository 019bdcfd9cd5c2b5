"""Whatever befalls a job, its attempts are bounded by the policy, and it ends or waits with a reason."""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from trainmaster.core.jobs import run_time
from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation, TrainingInterval
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import settlement, steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.decision import decide
from trainmaster.core.lifecycle.retries import may_requeue, most_retries
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.services.end_policy import EndPolicy

from tests.builders import NOON, A, attempt, job, minutes, of, waiting
from tests.ends import stopped_for_idle
from tests.memory.edges import MemoryLogs
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.sagemaker import MemorySageMaker
from tests.memory.tables import Tables

S = JobState
STOPPED = Reason(code=ReasonCode.STOPPED_BY_USER, message="ada")
FAILURES = {
    "service": "InternalServerError: We encountered an internal error. Please try again.",
    "hardware": "AlgorithmError: CUDA error: uncorrectable ECC error encountered",
    "network": "AlgorithmError: NCCL error: unhandled system error",
    "gpu-oom": "AlgorithmError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "user-code": "AlgorithmError: KeyError: 'x', exit code: 1",
    "unknown": "AlgorithmError: x",
}
ENDS = (
    *FAILURES,
    *["preempted", "idle", "max-wait"] * 4,
    *["capacity", "cancelled", "completed", "completed"],
)
ROUNDS = 12
"""Times that a history repeats itself: more than any policy here allows of one kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """Of one attempt."""

    end: str
    trains: float
    """Minutes, after five of starting."""
    interruptions: int
    failed_at_stop: str | None
    """What it fails of when it is asked to stop; None: it stops."""


fates = st.builds(
    Fate,
    end=st.sampled_from(ENDS),
    trains=st.sampled_from([0, 1, 40, 130, 400]),
    interruptions=st.sampled_from([0, 0, 0, 1, 2, 5]),
    failed_at_stop=st.sampled_from([None] * 9 + sorted(FAILURES)),
)
stories = st.lists(fates, min_size=1, max_size=3)
"""What happens again and again: otherwise nearly every history would soon meet something final."""


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    every = [one.value for one in FailureClass]
    return {
        "pools": [
            {
                "name": "main",
                "capacity": {A: draw(st.sampled_from([1, 1, 1, 0]))},
                "spot_capacity": {A: 1},
                "preemption": {"max_per_job": draw(st.integers(0, 3))},
            }
        ],
        "recovery": {
            "max_retries": draw(st.integers(0, 4)),
            "min_runtime": draw(st.sampled_from(["0s", "0s", "1h", "2h"])),
            "retry_classes": draw(st.sampled_from([every, every, ["service", "network"], []])),
            **draw(st.sampled_from([{}, {"on_oom": {"batch": ["bs"]}}])),
        },
        "spot": {
            "max_interruptions": draw(st.integers(0, 3)),
            "min_progress_ratio": draw(st.sampled_from([0, 0.5, 1])),
            "fallback": draw(st.sampled_from(["on-demand", "on-demand", "none"])),
        },
    }


@dataclass(slots=True)
class Life:
    """One job from its submission on, judged by the product."""

    document: dict[str, Any]
    job: Job
    now: datetime = NOON
    seen: list[Change] = field(default_factory=list)
    end_policy: EndPolicy = field(init=False)
    policy: Policy = field(init=False)

    def __post_init__(self) -> None:
        tables = Tables(requests={self.job.name: json.dumps({"HyperParameters": {"bs": "64"}}).encode()})
        policies = MemoryPolicyStore(tables)
        policies.put(self.document, pools=["main"], replaces=tables.policy)
        self.policy = parse_policy(self.document)
        self.end_policy = EndPolicy(
            policies=policies,
            reader=MemoryReader(tables),
            training=MemorySageMaker(clock=lambda: self.now),
            logs=MemoryLogs(),
        )

    def attempt(self, fate: Fate) -> None:
        """Claimed, started, in training, interrupted, asked to stop, over."""
        one = self.job
        self.now = max(self.now, one.not_before or self.now)
        claimed = steps.claim(steps.unparked(one), self._claim(one))
        running = steps.recorded(claimed, training_job_arn="arn:x", now=self.now)
        began = self.now + minutes(5)
        self.now = began + minutes(fate.trains)
        is_spot = running.live is not None and running.live.max_wait is not None
        news = Observation(
            training_job_name=one.name,
            training_job_arn="arn:x",
            status="InProgress",
            secondary_status="Training",
            training_since=began,
            training_intervals=(TrainingInterval(since=began, until=self.now),),
            interruptions=fate.interruptions if is_spot else 0,
        )
        running = self.end_policy.progress(steps.progressed(running, news, now=self.now), news, now=self.now)
        self._over(self._asked(running, fate), news, fate)

    def _claim(self, one: Job) -> Attempt:
        shape = one.shapes[0]
        return attempt(
            one.name,
            number=one.attempt,
            training_job_arn=None,
            shape=shape,
            max_runtime=run_time.runtime_left(one)[0],
            max_wait=one.max_wait,
            claimed_at=self.now,
            lease_until=self.now + steps.LEASE,
        )

    def _asked(self, running: Job, fate: Fate) -> Job:
        """What somebody else wants of it meanwhile."""
        (pool,) = self.policy.pools
        if running.state is not S.RUNNING:
            return running
        if fate.end == "preempted" and running.preemptions < pool.preemption.max_per_job:
            return steps.preempted_for(running, waiting("urgent"))
        if fate.end == "cancelled":
            return steps.cancelled(running, reason=STOPPED, now=self.now)
        if fate.end == "idle":
            idle = steps.idle(running, since=self.now - minutes(1))
            if may_requeue(running, self.policy.governing.recovery):
                return stopped_for_idle(idle, self.now, requeues=True)
            return stopped_for_idle(idle, self.now)
        return running

    def _over(self, one: Job, news: Observation, fate: Fate) -> None:
        over = replace(news, ended_at=self.now, **_said(one, fate))
        facts = self.end_policy.gather(one, over, now=self.now)
        assert facts is not None
        end = decide(facts, now=self.now)
        change = settlement.settled(one, end, over, now=self.now)
        self.seen.append(change)
        self.job = change.after


def _said(one: Job, fate: Fate) -> dict[str, Any]:
    """What SageMaker says of the end."""
    asked = one.state in (S.PREEMPTING, S.STOPPING)
    if asked and fate.failed_at_stop is not None:
        return _failed(FAILURES[fate.failed_at_stop])
    if asked or fate.end in ("preempted", "idle", "cancelled"):
        return {"status": "Stopped", "secondary_status": "Stopped"}
    if fate.end == "capacity":
        return _failed("CapacityError: none")
    if fate.end == "max-wait":
        is_spot = one.live is not None and one.live.max_wait is not None
        ended = "MaxWaitTimeExceeded" if is_spot else "MaxRuntimeExceeded"
        return {"status": "Stopped", "secondary_status": ended}
    if fate.end == "completed":
        return {"status": "Completed", "secondary_status": "Completed"}
    return _failed(FAILURES[fate.end])


def _failed(reason: str) -> dict[str, Any]:
    return {"status": "Failed", "secondary_status": "Failed", "failure_reason": reason}


jobs = st.builds(
    lambda is_spot, wants, halves: replace(
        one := job(
            shapes=(job(vector=of(spot=is_spot)).spec.shapes[0],),
            max_wait=timedelta(hours=30) if is_spot else None,
            halves_batch=halves,
        ),
        spec=replace(one.spec, retries=wants),
    ),
    st.booleans(),
    st.none() | st.integers(0, 5),
    st.booleans(),
)


@settings(max_examples=500, deadline=None)
@given(documents(), jobs, stories)
def test_no_history_makes_more_attempts_than_the_policy_allows(
    document: dict[str, Any], one: Job, story: list[Fate]
) -> None:
    """What is counted here is what happened, not what the job says of itself."""
    life = Life(document=document, job=one)
    for fate in story * ROUNDS:
        if life.job.is_final:
            break
        life.attempt(fate)
    (pool,), most = life.policy.pools, most_retries(one, life.policy.governing.recovery)
    came_back = Counter(_why(change) for change in life.seen if not change.after.is_final)
    assert came_back["failure"] <= most
    assert came_back["idle-requeue"] <= most
    assert came_back["preemption"] <= pool.preemption.max_per_job
    assert came_back["spot-fallback"] <= 1
    assert set(came_back) <= {"failure", "idle-requeue", "preemption", "spot-fallback", "capacity"}
    assert life.job.attempt == came_back.total()
    assert life.job.is_final or came_back["capacity"], "nothing else goes on for ever"
    for change in life.seen:
        assert_explained(change)


def _why(change: Change) -> str:
    assert change.ended is not None
    assert change.ended.reason is not None
    return "failure" if change.ended.diagnosis else change.ended.reason.code


def assert_explained(change: Change) -> None:
    """Final with a reason, backing off until an instant with one, or in its turn."""
    before, after = change.before, change.after
    assert change.ended is not None
    assert change.ended.reason is not None
    if after.is_final:
        assert after.reason is not None
    else:
        assert after.state in (S.PENDING, S.PREEMPTED)
        assert after.attempt == before.attempt + 1
        assert (after.not_before is None) == (after.waiting is None)
    if after.comebacks.retries > before.comebacks.retries:
        assert after.waiting is not None
        assert f"retry {after.comebacks.retries} of " in after.waiting.message
        assert after.comebacks.productive == timedelta()
    if before.state is S.STOPPING:
        assert after.is_final, "who does not come back does not come back"
