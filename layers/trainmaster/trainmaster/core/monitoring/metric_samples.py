"""Samples of metrics from what happens to jobs and what a pool holds."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TypeAlias

from trainmaster.core.costs.ledger import Cause, lost_to
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.lifecycle.change import (
    Change,
    EndKind,
    end_kind,
    failure_class,
    reason_of_end,
    status_is_news,
    stop_denied,
)
from trainmaster.core.memory.accelerators import gpus
from trainmaster.core.monitoring.metrics import (
    CAPACITY,
    FAILURES,
    IDLE_STOPS,
    JOBS_WAITING,
    PREEMPTIONS,
    RETRIES,
    SPENT,
    SPOT_FALLBACKS,
    STARTS,
    STARTS_PAUSED,
    STARTS_REFUSED,
    UNKNOWN_STATUSES,
    USED,
    VIOLATIONS,
    WAIT,
    WARM,
    WASTED,
    Metric,
    Sample,
)
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.rules.violation import Outcome, ViolationRecord, says_the_same

MOST_COUNTED = 1000
"""Most jobs of a pool's queue that are counted by type: one page of the table, however many wait."""
_HOUR = timedelta(hours=1)


def samples(change: Change) -> Iterator[Sample]:
    """Yield the samples that a change counts as, once it is written.

    The writer of a change counts it: a death before the samples are out loses them, and none is out twice.
    """
    yield from _samples_of_start(change)
    kind = end_kind(change)
    if kind is not None:
        yield from _samples_of_end(change, kind)
        yield from _samples_of_waste(change)
        yield from _samples_of_bill(change)
    if change.role is not None:
        yield Sample(metric=STARTS_REFUSED, value=1, of=change.after.spec.pool)
        if change.role.after.pause is not None:
            yield Sample(metric=STARTS_PAUSED, value=1, of=change.after.spec.pool)
    if stop_denied(change) is not None:
        yield Sample(metric=VIOLATIONS, value=1, of=Outcome.NOT_STOPPED.value)
    if status_is_news(change):
        yield Sample(metric=UNKNOWN_STATUSES, value=1)


def samples_of_record(record: ViolationRecord, replaces: ViolationRecord | None) -> Iterator[Sample]:
    """Yield the sample of a violation's record, unless it repeats the judgement of an earlier policy."""
    if replaces is None or not says_the_same(replaces, record):
        yield Sample(metric=VIOLATIONS, value=1, of=record.outcome.value)


def _samples_of_start(change: Change) -> Iterator[Sample]:
    spec, started = change.after.spec, _taken_by_sagemaker(change)
    if started is None:
        return
    yield Sample(metric=STARTS, value=1, of=spec.pool)
    if started.number == 0:
        waited = started.claim.at - (change.after.queued_since or spec.submitted_at)
        yield Sample(metric=WAIT, value=waited.total_seconds(), of=spec.team)


def _taken_by_sagemaker(change: Change) -> Attempt | None:
    """Return the attempt, if this change is the first to know its training job."""
    before, after = change.before.live, change.ended or change.after.live
    if before is None or before.training_job_arn is not None or after is None:
        return None
    return after if after.training_job_arn is not None else None


def _samples_of_end(change: Change, kind: EndKind) -> Iterator[Sample]:
    match kind:
        case EndKind.PREEMPTED:
            yield Sample(metric=PREEMPTIONS, value=1, of=change.after.spec.pool)
        case EndKind.RETRIED:
            yield Sample(metric=RETRIES, value=1, of=failure_class(change))
        case EndKind.FAILED:
            yield Sample(metric=FAILURES, value=1, of=failure_class(change))
        case EndKind.MOVED_TO_ON_DEMAND:
            yield Sample(metric=SPOT_FALLBACKS, value=1)
        case EndKind.COMPLETED | EndKind.STOPPED | EndKind.REQUEUED:
            pass


def _samples_of_waste(change: Change) -> Iterator[Sample]:
    reason, ended = reason_of_end(change), change.ended
    if reason is not None and lost_to(reason.code) is Cause.IDLE:
        yield Sample(metric=IDLE_STOPS, value=1)
    if ended is not None and ended.lost:
        code = ended.reason.code if ended.reason else ""
        yield Sample(metric=WASTED, value=_gpu_hours_lost(ended), of=lost_to(code).value)


def _samples_of_bill(change: Change) -> Iterator[Sample]:
    cents = change.ended.bill.cents if change.ended else None
    if cents:
        yield Sample(metric=SPENT, value=cents / 100, of=change.after.spec.team)


def _gpu_hours_lost(ended: Attempt) -> float:
    """Return the GPU hours lost; types whose number of GPUs is unknown count as having none."""
    count = sum((gpus(capacity.instance_type) or 0) * number for capacity, number in ended.vector.items())
    return ended.lost / _HOUR * count


def samples_of_instances(pool: PoolPolicy, *, used: Vector, warm: Vector) -> Iterator[Sample]:
    """Yield the counts of every type of the policy, also at 0, and of those that are still in use or warm."""
    capacity = pool_vector(pool)
    for instance_kind in _kinds(capacity, used, warm):
        for metric, counts in ((USED, used), (WARM, warm), (CAPACITY, capacity)):
            yield _of_kind(metric, pool, instance_kind, counts)


def samples_of_waiting(pool: PoolPolicy, waiting: Iterable[WaitingJob]) -> Iterator[Sample]:
    """Yield the number of waiting jobs by type; ``waiting`` are the first of the pool's queue."""
    counts = Counter(capacity for job in waiting for capacity in job.shapes[0].vector)
    for instance_kind in _kinds(pool_vector(pool), counts):
        yield _of_kind(JOBS_WAITING, pool, instance_kind, counts)


_Kind: TypeAlias = tuple[str, str]
"""An instance type and its capacity type: the training plans of one type are one kind."""


def _kind(capacity: Capacity) -> _Kind:
    return capacity.instance_type, capacity.capacity_type.value


def _kinds(*vectors: Vector) -> list[_Kind]:
    return sorted({_kind(capacity) for vector in vectors for capacity in vector})


def _of_kind(metric: Metric, pool: PoolPolicy, kind: _Kind, counts: Vector) -> Sample:
    count = sum(count for capacity, count in counts.items() if _kind(capacity) == kind)
    return Sample(metric=metric, value=count, of=(pool.name, *kind))
