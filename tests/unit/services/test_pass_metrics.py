"""What a pass and a reconcile run did, in numbers."""

from typing import Any

import pytest
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.outbox import to_tell
from trainmaster.core.outbox.messages import MessageKind, Notice, NoticeKind, OutboxMessage
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.services import pass_metrics
from trainmaster.services.reconciler import Repairs
from trainmaster.services.scheduler.passes import Summary

from tests.builders import NOON, minutes, of, waiting

Numbers = list[tuple[str, str, float]]


def of_pass(**fields: Any) -> Numbers:
    """(metric, dimension, value) of a pass of pool main that ended at noon, gauges left out."""
    samples = pass_metrics.of_pass("main", Summary(looks=1, **fields), now=NOON)
    gauges = ("OldestWaitSeconds", "ErrandsPending")
    return [(one.metric.name, one.of, one.value) for one in samples if one.metric.name not in gauges]


def told(kind: NoticeKind, **detail: Any) -> OutboxMessage:
    return to_tell(Notice(kind=kind, team="vision", what="", detail=detail), cause="c", at=NOON)


def started(job: WaitingJob) -> Start:
    return Start(job=job, shape=Shape(vector=of()), most_used={}, warm={})


def test_a_pass_that_did_nothing_says_who_waits_longest_and_what_is_left() -> None:
    summary = Summary(looks=1, waiting_since=NOON - minutes(5), messages_overdue=3)
    samples = list(pass_metrics.of_pass("main", summary, now=NOON))
    assert [(one.metric.name, one.dimensions, one.value) for one in samples] == [
        ("OldestWaitSeconds", ({"pool": "main"}, {}), 300),
        ("ErrandsPending", ({"pool": "main"}, {}), 3),
    ]


def test_an_empty_queue_has_no_wait() -> None:
    samples = pass_metrics.of_pass("main", Summary(looks=1), now=NOON)
    assert next(samples).value == 0


def test_a_pool_that_is_no_more_is_not_measured() -> None:
    assert list(pass_metrics.of_pass("gone", Summary(), now=NOON)) == []


def test_starts_are_counted_and_first_ones_give_the_wait_of_their_team() -> None:
    first = waiting("first", minutes_ago=10, team="vision")
    back = waiting("back", minutes_ago=90, state=JobState.PREEMPTED, trained=minutes(5))
    retried = waiting("retried", minutes_ago=90, trained=minutes(0))
    assert of_pass(started=[started(one) for one in (first, back, retried)]) == [
        ("Starts", "main", 3),
        ("WaitSeconds", "vision", 600),
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(told(NoticeKind.JOB_PREEMPTED), [("Preemptions", "main", 1)], id="preempted"),
        pytest.param(
            told(NoticeKind.JOB_RETRIED, failure_class="network"), [("Retries", "network", 1)], id="retried"
        ),
        pytest.param(
            told(NoticeKind.JOB_FAILED, failure_class="user-code"),
            [("Failures", "user-code", 1)],
            id="failed",
        ),
        pytest.param(
            told(NoticeKind.UNMANAGED_JOB, outcome="adopted"),
            [("Violations", "adopted", 1)],
            id="went round the queue",
        ),
        pytest.param(
            told(NoticeKind.RULE_VIOLATED, outcome="audited"),
            [("Violations", "audited", 1)],
            id="audited rule",
        ),
        pytest.param(told(NoticeKind.MOVED_TO_ON_DEMAND), [("SpotFallbacks", "", 1)], id="moved"),
        pytest.param(told(NoticeKind.JOB_STOPPED, reason="idle"), [("IdleStops", "", 1)], id="idle, stopped"),
        pytest.param(
            told(NoticeKind.JOB_REQUEUED, reason="idle-requeue"), [("IdleStops", "", 1)], id="idle, requeued"
        ),
        pytest.param(told(NoticeKind.JOB_STOPPED, reason="stopped-by-user"), [], id="stopped by a person"),
        pytest.param(told(NoticeKind.JOB_COMPLETED), [], id="completed"),
        pytest.param(OutboxMessage(id="a", kind=MessageKind.DELETE_ALARMS, at=NOON), [], id="not a notice"),
    ],
)
def test_what_was_told_is_counted(message: OutboxMessage, expected: Numbers) -> None:
    assert of_pass(messages=[message]) == expected


@pytest.mark.parametrize(
    ("instances", "hours"),
    [
        pytest.param({"ml.p4d.24xlarge": 2}, 8.0, id="half an hour of 2 instances with 8 GPUs"),
        pytest.param({"ml.p4d.24xlarge": 1, "ml.m5.xlarge": 4}, 4.0, id="those without GPUs waste none"),
        pytest.param({"ml.unheard.of": 2}, 0.0, id="nor those that nobody knows"),
    ],
)
def test_lost_training_is_wasted_gpu_hours_by_cause(instances: dict[str, int], hours: float) -> None:
    lost = told(NoticeKind.JOB_PREEMPTED, lost_seconds=1800, lost_to="preemption", instances=instances)
    assert of_pass(messages=[lost])[1:] == [("WastedGpuHours", "preemption", hours)]


def test_a_reconcile_run_tells_the_depth_of_each_queue_and_who_goes_unwatched() -> None:
    samples = pass_metrics.of_reconcile(Repairs(depths={"main": 7, "-": 0}, unguarded=2))
    assert [(one.metric.name, one.dimensions, one.value) for one in samples] == [
        ("QueueDepth", ({"pool": "main"},), 7),
        ("QueueDepth", ({"pool": "-"},), 0),
        ("UnguardedJobs", ({},), 2),
    ]
