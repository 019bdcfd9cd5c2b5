"""What is read before an end is decided, and when."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.decision import End, decide
from trainmaster.core.records import StoredPolicy
from trainmaster.services.end_policy import EndPolicy

from tests.builders import NOON, A, attempt, live_job, minutes, of, seen
from tests.ends import end_of
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.sagemaker import MemorySageMaker
from tests.memory.tables import Tables

FAILED: dict[str, Any] = {"status": "Failed", "secondary": "Failed", "failure_reason": "Weird: x"}
SPOT = Shape(vector=of(spot=True))
ALL_AT_ONCE = {"retry_classes": ["unknown", "service", "user-code"], "min_runtime": "0s"}


class CountingPolicies(MemoryPolicyStore):
    reads = 0

    def current(self) -> StoredPolicy:
        self.reads += 1
        return super().current()


@dataclass(slots=True)
class CountingLogs:
    reads: list[str] = field(default_factory=list)

    def tail(self, training_job_name: str) -> tuple[str, ...]:
        self.reads.append(training_job_name)
        return ("the last line",)


@dataclass(slots=True)
class Court:
    logs: CountingLogs | None = field(default_factory=CountingLogs)
    recovery: dict[str, Any] = field(default_factory=dict)
    policies: CountingPolicies = field(init=False)
    end_policy: EndPolicy = field(init=False)

    def __post_init__(self) -> None:
        tables = Tables()
        self.policies = CountingPolicies(tables)
        pool = {"name": "main", "capacity": {A: 1}, "spot_capacity": {A: 1}}
        document = {"pools": [pool], "recovery": self.recovery}
        self.policies.put(document, pools=["main"], replaces=tables.policy)
        self.end_policy = EndPolicy(
            policies=self.policies,
            reader=MemoryReader(tables),
            training=MemorySageMaker(clock=lambda: NOON),
            logs=self.logs,
        )

    def end(self, job: Job, said: Observation) -> End | None:
        facts = self.end_policy.gather(job, said, now=NOON)
        return None if facts is None else decide(facts, now=NOON)


def test_a_failure_is_looked_into_and_the_policy_decides() -> None:
    court = Court(recovery=ALL_AT_ONCE)
    end = court.end(live_job(), seen(**FAILED))
    assert end is not None
    assert (end.becomes, end.diagnosis is not None) == (JobState.PENDING, True)


def test_the_log_is_read_once_however_often_the_look_is_repeated() -> None:
    court = Court()
    for _ in range(3):
        court.end(live_job(), seen(**FAILED))
    assert court.logs is not None
    assert court.logs.reads == ["train-1"]
    court.end(live_job("other"), seen("other", **FAILED))
    assert court.logs.reads == ["train-1", "other"]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        pytest.param(live_job(), seen(status="Completed", secondary="Completed"), id="completed"),
        pytest.param(
            live_job(state=JobState.PREEMPTING), seen(status="Stopped", secondary="Stopped"), id="made room"
        ),
        pytest.param(
            live_job(state=JobState.STOPPING), seen(**FAILED), id="failed while it was stopped for good"
        ),
        pytest.param(
            live_job(shapes=(SPOT,), live=attempt(shape=SPOT)),
            seen(status="Completed", secondary="Completed"),
            id="completed on spot",
        ),
    ],
)
def test_other_ends_cost_no_read(job: Job, said: Observation) -> None:
    court = Court()
    assert court.end(job, said) == end_of(job, said)
    assert court.logs is not None
    assert (court.policies.reads, court.logs.reads) == (0, [])


@pytest.mark.parametrize(
    ("ended_ago", "left"),
    [
        pytest.param(0, True, id="just now: an event is on its way"),
        pytest.param(0.9, True, id="within a minute"),
        pytest.param(1, False, id="then the event is lost"),
        pytest.param(None, False, id="nobody knows when"),
    ],
)
def test_who_may_not_read_logs_leaves_a_fresh_failure_to_who_may(
    ended_ago: float | None, *, left: bool
) -> None:
    ended = None if ended_ago is None else NOON - minutes(ended_ago)
    end = Court(logs=None).end(live_job(), seen(**FAILED, ended_at=ended))
    assert (end is None) == left
    assert Court().end(live_job(), seen(**FAILED, ended_at=ended)) is not None


@pytest.mark.parametrize(
    ("job", "reads"),
    [
        pytest.param(live_job(), 0, id="on demand"),
        pytest.param(live_job(live=attempt(shape=SPOT)), 0, id="on spot, never interrupted"),
        pytest.param(live_job(live=attempt(shape=SPOT, interruptions=1)), 1, id="interrupted"),
    ],
)
def test_the_policy_is_read_for_a_job_that_runs_once_it_was_interrupted(job: Job, reads: int) -> None:
    court = Court()
    assert court.end_policy.progress(job, seen(), now=NOON) == job
    assert court.policies.reads == reads


def test_a_job_that_has_had_enough_of_spot_is_asked_to_stop_and_why() -> None:
    one = live_job(shapes=(SPOT,), live=attempt(shape=SPOT, interruptions=4))
    after = Court().end_policy.progress(one, seen(interruptions=4), now=NOON)
    assert after.state is JobState.PREEMPTING
    assert after.reason is not None
    assert (after.reason.code, after.reason.message) == (
        "spot-fallback",
        "interrupted 4 times on spot, more than 3",
    )


def test_one_that_cannot_leave_is_told_so_once() -> None:
    shape = Shape(vector=of(2, spot=True))
    one = live_job(shapes=(shape,), live=attempt(shape=shape, interruptions=4))
    court = Court()
    after = court.end_policy.progress(one, seen(interruptions=4), now=NOON)
    assert after.state is JobState.RUNNING
    assert after.live is not None
    assert after.live.spot.stays is not None
    assert after.live.spot.stays.code == "no-on-demand-capacity"
    assert court.end_policy.progress(after, seen(interruptions=5), now=NOON) == after


def test_one_that_could_not_leave_does_when_a_later_policy_has_room_for_it() -> None:
    stays = Reason(code=ReasonCode.NO_ON_DEMAND_CAPACITY, message="pool main has none")
    told = attempt(shape=SPOT, interruptions=4, stays_on_spot=stays)
    after = Court().end_policy.progress(live_job(shapes=(SPOT,), live=told), seen(interruptions=4), now=NOON)
    assert (after.state, after.reason and after.reason.code) == (JobState.PREEMPTING, "spot-fallback")


@dataclass(slots=True)
class OneTypesDays:
    """Answers that the spot instances of every type were interrupted once an hour today."""

    reads: list[str] = field(default_factory=list)

    def spot_days(self, instance_type: str) -> tuple[SpotDay, ...]:
        self.reads.append(instance_type)
        return (SpotDay(day=NOON.date(), interruptions=10, instance_seconds=36_000),)


@pytest.mark.parametrize(
    ("spot", "state", "reads"),
    [
        pytest.param({"count_type": True}, JobState.PREEMPTING, [A], id="the policy counts the type"),
        pytest.param({}, JobState.RUNNING, [], id="it does not, so the record is not even read"),
    ],
)
def test_the_record_of_the_type_is_read_where_it_counts(
    spot: dict[str, Any], state: JobState, reads: list[str]
) -> None:
    court, days = Court(), OneTypesDays()
    pool = {"name": "main", "capacity": {A: 1}, "spot_capacity": {A: 1}}
    document = {"pools": [pool], "spot": {"min_progress_ratio": 0} | spot}
    court.policies.put(document, pools=["main"], replaces=court.policies.current())
    end_policy = replace(court.end_policy, spot=days)
    job = live_job(shapes=(SPOT,), max_runtime=timedelta(hours=20), live=attempt(shape=SPOT, interruptions=2))
    now = NOON + timedelta(hours=2)
    after = end_policy.progress(job, seen(interruptions=2), now=now)
    assert (after.state, days.reads) == (state, reads)
    facts = end_policy.gather(job, seen(status="Stopped", secondary="MaxWaitTimeExceeded"), now=now)
    assert facts is not None
    assert list(facts.spot_records) == reads
