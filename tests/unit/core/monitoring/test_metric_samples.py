"""What a change counts as, and what a pool holds."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Bill, Reason
from trainmaster.core.jobs.instances import Shape, Vector
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.metric_samples import (
    samples,
    samples_of_instances,
    samples_of_record,
    samples_of_waiting,
)
from trainmaster.core.monitoring.metrics import USED, Sample
from trainmaster.core.outbox.messages import NoticeKind
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.rules.violation import Outcome

from tests.builders import NOON, attempt, changed, claimed, job, live_job, minutes, of, seen, waiting
from tests.ends import observed, stopped_for_idle
from tests.unit.core.outbox.examples import CHANGES, RECORD

Numbers = list[tuple[str, str, float]]
LOST = minutes(10) / minutes(60) * 16
"""Ten minutes of two instances with eight GPUs each."""


def numbers(counted: Iterable[Sample]) -> Numbers:
    """(metric, dimension, value) of each."""
    return [(one.metric.name, one.of if isinstance(one.of, str) else "", one.value) for one in counted]


def of_record(outcome: Outcome, *, was: Outcome | None = None) -> Numbers:
    replaces = None if was is None else replace(RECORD, outcome=was)
    return numbers(samples_of_record(replace(RECORD, outcome=outcome, revision=9), replaces))


def end(**fields: Any) -> Change:
    """Of an attempt that is preempted after half an hour, all of it lost."""
    before = live_job(state=JobState.PREEMPTING)
    assert before.live is not None
    reason = Reason(code=ReasonCode.PREEMPTION, message="made room")
    over = changed(before.live, ended_at=NOON + minutes(30), reason=reason, lost=minutes(30), **fields)
    after = replace(before, state=JobState.PREEMPTED, live=None, attempt=1)
    return Change(before=before, after=after, ended=over)


def recorded(one: Job) -> Change:
    return Change(before=one, after=steps.recorded(one, training_job_arn="arn:x", now=NOON + minutes(20)))


COUNTED: dict[NoticeKind, Numbers] = {
    NoticeKind.JOB_FAILED: [("Failures", "user-code", 1), ("WastedGpuHours", "failures", LOST)],
    NoticeKind.JOB_RETRIED: [("Retries", "gpu-oom", 1), ("WastedGpuHours", "failures", LOST)],
    NoticeKind.JOB_PREEMPTED: [("Preemptions", "main", 1)],  # before it trained
    NoticeKind.JOB_REQUEUED: [("IdleStops", "", 1), ("WastedGpuHours", "idle", LOST)],
    NoticeKind.MOVED_TO_ON_DEMAND: [("SpotFallbacks", "", 1), ("WastedGpuHours", "failures", LOST)],
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_that_somebody_is_notified_of_is_counted_if_it_ended_an_attempt(kind: NoticeKind) -> None:
    assert numbers(samples(CHANGES[kind])) == COUNTED.get(kind, [])


def test_a_claim_is_no_start_yet() -> None:
    assert numbers(samples(Change(before=job(), after=claimed(job())))) == []


def test_an_attempt_that_sagemaker_took_is_a_start_and_the_first_one_ends_the_wait_at_its_claim() -> None:
    first = claimed(job(), now=NOON + minutes(10))
    assert numbers(samples(recorded(first))) == [("Starts", "main", 1), ("WaitSeconds", "default", 600)]
    assert numbers(samples(recorded(claimed(job(attempt=1), now=NOON)))) == [("Starts", "main", 1)]


def test_a_start_that_is_first_heard_of_at_its_end_counts_too() -> None:
    over = observed(claimed(job()), seen(status="Completed", ended_at=NOON), now=NOON)
    assert over is not None
    assert numbers(samples(over)) == [("Starts", "main", 1), ("WaitSeconds", "default", 0)]


def test_a_start_counts_once() -> None:
    again = recorded(recorded(claimed(job())).after)
    assert numbers(samples(again)) == []


def test_a_claim_that_was_never_created_is_no_start() -> None:
    one = claimed(job(state=JobState.PENDING))
    gone = steps.claim_undone(one, steps.unclaimed(one), None)
    assert numbers(samples(gone)) == []
    refused = steps.failed(
        one, reason=Reason(code=ReasonCode.FAILED_TO_START, message="no such subnet"), now=NOON
    )
    assert numbers(samples(steps.claim_undone(one, refused, None))) == [("Failures", "failed-to-start", 1)]


def test_an_idle_stop_counts_when_the_attempt_has_stopped() -> None:
    idle = steps.idle(live_job(), since=NOON)
    asked = Change(before=idle, after=stopped_for_idle(idle, now=NOON + minutes(30)))
    assert numbers(samples(asked)) == []
    stopped = observed(asked.after, seen(status="Stopped"), now=NOON + minutes(31))
    assert stopped is not None
    assert ("IdleStops", "", 1) in numbers(samples(stopped))


@pytest.mark.parametrize(
    ("vector", "hours"),
    [
        pytest.param(of(2, "ml.p4d.24xlarge"), 8.0, id="half an hour of 2 instances with 8 GPUs"),
        pytest.param(
            {**of(1, "ml.p4d.24xlarge"), **of(4, "ml.m5.xlarge")}, 4.0, id="those without GPUs waste none"
        ),
        pytest.param(of(2, "ml.unheard.of"), 0.0, id="nor those that nobody knows"),
    ],
)
def test_lost_training_is_wasted_gpu_hours_by_cause(vector: Vector, hours: float) -> None:
    lost = end(shape=Shape(vector=vector))
    assert numbers(samples(lost))[1:] == [("WastedGpuHours", "preemption", hours)]


def test_an_adopted_job_that_aws_does_not_let_us_stop_counts_when_it_is_first_said() -> None:
    stopping = live_job(state=JobState.STOPPING, live=attempt(stop_sent=False))
    denied = steps.not_stopped(stopping, "AccessDenied")
    assert numbers(samples(Change(before=stopping, after=denied))) == [("Violations", "not-stopped", 1)]
    assert numbers(samples(Change(before=denied, after=replace(denied, priority=3)))) == []


def test_a_violation_counts_by_its_outcome_and_anew_only_where_that_changes() -> None:
    assert of_record(Outcome.AUDITED) == [("Violations", "audited", 1)]
    assert of_record(Outcome.AUDITED, was=Outcome.AUDITED) == []
    assert of_record(Outcome.STOPPED, was=Outcome.AUDITED) == [("Violations", "stopped", 1)]
    assert of_record(Outcome.NOT_STOPPED, was=Outcome.STOPPED) == [("Violations", "not-stopped", 1)]
    assert of_record(Outcome.STOPPED, was=Outcome.NOT_STOPPED) == []


def test_what_an_attempt_cost_is_its_team_s_and_nothing_where_the_price_is_unknown() -> None:
    def spent(cents: int | None) -> Numbers:
        found = numbers(samples(end(bill=Bill(instance_seconds=3600, cents=cents))))
        return [one for one in found if one[0] == "SpentUsd"]

    assert spent(1250) == [("SpentUsd", "default", 12.5)]
    assert spent(None) == spent(0) == []


def test_a_type_that_left_the_policy_is_counted_for_as_long_as_it_is_held() -> None:
    pool = PoolPolicy(name="main", capacity={"ml.a": 2}, spot_capacity={"ml.a": 1})
    found = samples_of_instances(pool, used=of(3, "ml.old"), warm=of(1, "ml.a", spot=True))
    assert [(one.metric.name, one.of, one.value) for one in found] == [
        ("InstancesUsed", ("main", "ml.a", "on-demand"), 0),
        ("InstancesWarm", ("main", "ml.a", "on-demand"), 0),
        ("InstancesCapacity", ("main", "ml.a", "on-demand"), 2),
        ("InstancesUsed", ("main", "ml.a", "spot"), 0),
        ("InstancesWarm", ("main", "ml.a", "spot"), 1),
        ("InstancesCapacity", ("main", "ml.a", "spot"), 1),
        ("InstancesUsed", ("main", "ml.old", "on-demand"), 3),
        ("InstancesWarm", ("main", "ml.old", "on-demand"), 0),
        ("InstancesCapacity", ("main", "ml.old", "on-demand"), 0),
    ]


def test_a_job_waits_for_its_first_shape_and_for_each_type_of_it() -> None:
    pool = PoolPolicy(name="main", capacity={"ml.a": 2})
    both = Shape(vector={**of(2, "ml.a"), **of(1, "ml.b")})
    queue = [waiting("j1", shapes=(both,)), waiting("j2", shapes=(Shape(vector=of(1, "ml.a")), both))]
    found = samples_of_waiting(pool, queue)
    assert [(one.of, one.value) for one in found] == [
        (("main", "ml.a", "on-demand"), 2),
        (("main", "ml.b", "on-demand"), 1),
    ]


def test_a_sample_has_a_value_for_each_dimension_of_its_metric() -> None:
    with pytest.raises(ValueError, match="zip"):
        _ = Sample(metric=USED, value=1, of=("main", "ml.a")).dimensions
