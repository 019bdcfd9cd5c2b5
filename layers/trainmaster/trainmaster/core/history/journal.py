"""Make the history records of a change, for the transaction that writes it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from trainmaster.core.history.past_records import (
    CapacityChange,
    Ending,
    FinalJob,
    PastAttempt,
    PastCondition,
    PastEvent,
    PastWarmPool,
)
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.run_time import counted_time
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.outbox.render import event_detail
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.policy import Policy

_BESIDE = frozenset({"version", "at", "team", "job"})
"""Keys of an event's detail that its record already has in fields."""


def ending_of(change: Change, *, at: datetime) -> Ending | None:
    """Return the record of an end; None if neither an attempt nor a job ended with the change."""
    job, ended = change.after, change.ended
    is_over = job.is_final and not change.before.is_final
    if ended is None and not is_over:
        return None
    over_at = (ended.ended_at if ended else None) or job.ended_at or at
    return Ending(
        job=job.name,
        team=job.spec.team,
        ended_at=over_at,
        attempt=None if ended is None else _past(ended, change),
        final=final_job(job) if is_over else None,
    )


def _past(attempt: Attempt, change: Change) -> PastAttempt:
    code, by = attempt.reason.code if attempt.reason else None, attempt.preemptor
    return PastAttempt(
        number=attempt.number,
        vector=attempt.vector,
        claimed_at=attempt.claim.at,
        training_since=attempt.training_since,
        end=code,
        preempted_by=by.name if by else None,
        preempted_by_team=(by.team or change.after.spec.team) if by else None,
        warm_start=started_warm(attempt),
        lost=unsaved(attempt, change),
        unknown=_unknown(attempt, change),
        trained=attempt.trained,
        interruptions=attempt.spot.interruptions,
        checkpoint_at=attempt.checkpoint.last,
        statuses=attempt.statuses,
        speed=attempt.speed,
    )


def started_warm(attempt: Attempt) -> bool:
    """Tell whether it was claimed with a warm pool, and SageMaker did not report a start elsewhere."""
    return bool(attempt.warm_start) or attempt.claim.reuses is not None


def unsaved(attempt: Attempt, change: Change) -> timedelta:
    """Return training that no checkpoint kept; 0 where its checkpoints could not be seen."""
    if change.after.state is not JobState.STOPPED:
        return attempt.lost
    if change.after.spec.has_checkpoint and attempt.checkpoint.last is None:
        return attempt.lost
    trained = attempt.trained or timedelta()
    counted = counted_time(change.after.spec, attempt, trained)
    saved = change.after.checkpointed - change.before.checkpointed
    lost = max(counted - saved, timedelta())
    return max(lost if counted == trained else lost * (trained / counted), attempt.lost)


def _unknown(attempt: Attempt, change: Change) -> timedelta:
    """Return what may be saved of the training of a job that was stopped while no checkpoint was seen.

    Completed work is kept and failed work is lost, whatever was seen.
    """
    is_decided = change.after.state in (JobState.COMPLETED, JobState.FAILED)
    if is_decided or not change.after.spec.has_checkpoint or attempt.checkpoint.last is not None:
        return timedelta()
    return max((attempt.trained or timedelta()) - attempt.lost, timedelta())


def final_job(job: Job) -> FinalJob:
    """Return the record of a job as it stands, also of one that is not over yet."""
    spec = job.spec
    return FinalJob(
        entry_id=spec.entry_id,
        submitted_by=spec.submitted_by,
        submitted_at=spec.submitted_at,
        vector=spec.vector,
        priority=job.priority,
        max_runtime=spec.max_runtime,
        saves_checkpoints=spec.has_checkpoint,
        preemptible=spec.preemptible,
        state=job.state,
        earlier=job.attempt,
        max_wait=spec.max_wait,
        warm_key=spec.shapes[0].warm_key,
        learned_in=spec.learned_in,
        after=tuple(
            PastCondition(kind=condition.kind, job=condition.job, entry_id=condition.entry_id)
            for condition in (job.after.conditions if job.after else ())
        ),
        end=job.reason.code if job.reason else None,
        array=spec.array.name if spec.array else None,
        array_at_most=spec.array.at_most if spec.array else None,
        array_stop_after=spec.array.stop_after if spec.array else None,
        widths=spec.widths,
        speeds=job.elastic.progress.speeds if job.elastic and job.elastic.progress else {},
        avoids_plans=bool(spec.shapes[0].avoids_plans),
    )


def wait_counts(changes: Iterable[Change]) -> Mapping[tuple[str, Capacity], int]:
    """Return how many more jobs wait after the changes, by team and capacity, without zeros."""
    counts: Counter[tuple[str, Capacity]] = Counter()
    for change in changes:
        for job, sign in ((change.before, -1), (change.after, +1)):
            counts.update(dict.fromkeys(waits_for(job), sign))
    return {key: count for key, count in counts.items() if count}


def waits_for(job: Job) -> tuple[tuple[str, Capacity], ...]:
    """Return team and capacities that it is counted under while it waits for instances; else empty."""
    if job.is_live or job.is_final or job.waits_for_others:
        return ()
    return tuple((job.spec.team, capacity) for capacity in job.vector)


def warm_pool_over(
    warm: WarmPool, *, at: datetime, retained: timedelta | None = None, reused_by: Job | None = None
) -> PastWarmPool:
    """Return the record of a warm pool that is over, for the time that is billed.

    Args:
        warm: The warm pool.
        at: When it was reused, or seen to be gone.
        retained: Billed time that SageMaker reports; None: it reports none.
        reused_by: The job that was claimed with it; None: it expired or was given up.
    """
    until = at if reused_by else min(at, warm.expires_at)
    if retained is not None:
        until = warm.since + retained
    since = warm.billed_from or warm.since
    return PastWarmPool(
        training_job_name=warm.training_job_name,
        team=warm.team,
        vector=warm.vector,
        since=since,
        until=max(since, until),
        reused_by=reused_by.name if reused_by else None,
        reused_by_team=reused_by.spec.team if reused_by else None,
        because=warm.because,
    )


def capacity_changes(old: Policy, new: Policy, *, at: datetime) -> Iterator[CapacityChange]:
    """Yield the pools whose capacity changes; a removed pool has none."""
    for name in sorted({pool.name for policy in (old, new) for pool in policy.pools}):
        before, after = _capacity(old, name), _capacity(new, name)
        if before != after:
            yield CapacityChange(pool=name, at=at, capacity=after, before=before)


def _capacity(policy: Policy, name: str) -> Vector:
    pool = policy.pool(name)
    return {} if pool is None else pool_vector(pool)


def event_of(message: OutboxMessage) -> PastEvent | None:
    """Return the record of a notice; None if the message carries none."""
    notice = message.notice
    if notice is None:
        return None
    detail = {name: value for name, value in event_detail(message).items() if name not in _BESIDE}
    return PastEvent(
        id=message.id,
        at=message.at,
        kind=notice.kind.value,
        team=notice.team,
        job=notice.job,
        detail=detail,
    )
