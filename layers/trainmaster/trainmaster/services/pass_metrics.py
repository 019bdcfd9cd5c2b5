"""What a pass and a reconcile run did, as metrics. Nothing is read for it."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from trainmaster.core.costs.ledger import Cause, lost_to
from trainmaster.core.jobs.model import JobState
from trainmaster.core.memory.accelerators import gpus
from trainmaster.core.monitoring import metrics
from trainmaster.core.monitoring.metrics import Sample
from trainmaster.core.outbox.messages import Notice, NoticeKind, OutboxMessage
from trainmaster.services.reconciler import Repairs
from trainmaster.services.scheduler.passes import Summary

_SECONDS_PER_HOUR = 3600


def of_pass(pool: str, summary: Summary, *, now: datetime) -> Iterator[Sample]:
    """``now``: the end of the pass. A wait is measured up to it, so it is up to a pass too long."""
    if summary.looks:
        oldest = summary.waiting_since
        wait = 0.0 if oldest is None else (now - oldest).total_seconds()
        yield Sample(metric=metrics.OLDEST_WAIT, value=wait, of=pool)
        yield Sample(metric=metrics.MESSAGES_PENDING, value=summary.messages_overdue, of=pool)
    if summary.started:
        yield Sample(metric=metrics.STARTS, value=len(summary.started), of=pool)
    for job in (start.job for start in summary.started):
        if job.state is JobState.PENDING and job.trained is None:
            waited = (now - job.submitted_at).total_seconds()
            yield Sample(metric=metrics.WAIT, value=waited, of=job.team)
    yield from of_messages(pool, summary.messages)


def of_messages(pool: str, done: Iterable[OutboxMessage]) -> Iterator[Sample]:
    """What was told just now: each decision once, unless a pass died between telling and noting it."""
    for notice in (message.notice for message in done):
        if notice is None:
            continue
        counted = _counted(pool, notice)
        if counted is not None:
            yield counted
        if _is_for_idleness(notice):
            yield Sample(metric=metrics.IDLE_STOPS, value=1)
        if notice.detail.get("lost_seconds"):
            yield Sample(metric=metrics.WASTED, value=_gpu_hours_lost(notice), of=notice.detail["lost_to"])


def of_reconcile(repairs: Repairs) -> Iterator[Sample]:
    for pool, depth in repairs.depths.items():
        yield Sample(metric=metrics.QUEUE_DEPTH, value=depth, of=pool)
    yield Sample(metric=metrics.UNGUARDED, value=repairs.unguarded)


def _counted(pool: str, notice: Notice) -> Sample | None:
    detail = notice.detail
    match notice.kind:
        case NoticeKind.JOB_PREEMPTED:
            return Sample(metric=metrics.PREEMPTIONS, value=1, of=pool)
        case NoticeKind.JOB_RETRIED:
            return Sample(metric=metrics.RETRIES, value=1, of=detail["failure_class"])
        case NoticeKind.JOB_FAILED:
            return Sample(metric=metrics.FAILURES, value=1, of=detail["failure_class"])
        case NoticeKind.UNMANAGED_JOB | NoticeKind.RULE_VIOLATED:
            return Sample(metric=metrics.VIOLATIONS, value=1, of=detail["outcome"])
        case NoticeKind.MOVED_TO_ON_DEMAND:
            return Sample(metric=metrics.SPOT_FALLBACKS, value=1)
        case _:
            return None


def _is_for_idleness(notice: Notice) -> bool:
    return lost_to(notice.detail.get("reason", "")) is Cause.IDLE


def _gpu_hours_lost(notice: Notice) -> float:
    """Types whose GPUs nobody knows count as having none."""
    instances: dict[str, int] = notice.detail["instances"]
    count = sum((gpus(instance_type) or 0) * number for instance_type, number in instances.items())
    hours: float = notice.detail["lost_seconds"] * count / _SECONDS_PER_HOUR
    return hours
