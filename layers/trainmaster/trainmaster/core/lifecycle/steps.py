"""Steps of a job's life as pure functions: the job before, an instant, and the job after."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.core.jobs.attempts import Attempt, AttemptEnd, Bill, Preemptor, Progress, Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.run_time import attempt_run_time
from trainmaster.core.jobs.start_troubles import AccountRefusals, StartTrouble
from trainmaster.core.lifecycle.backoff import backoff
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.dependents import waiting_for_others
from trainmaster.core.lifecycle.settlement import WARM_AVAILABLE, as_seen
from trainmaster.core.lifecycle.unserved_attempts import with_room_made, with_training_seen
from trainmaster.core.lifecycle.width_changes import run_time_granted
from trainmaster.core.planning.snapshot import WaitingJob, WarmPool, known_as

LEASE = timedelta(seconds=300)
"""Time that a claim is safe from repair: more than the scheduler's timeout (120 s) and its SDK's retries."""
MAX_FAULTS = 3
FIRST_FAULT_WAIT = timedelta(minutes=10)
LONGEST_FAULT_WAIT = timedelta(hours=6)
MAX_UNKNOWN_ERRORS = 3
"""Errors of unknown kind after which the job is given up."""


def claim(job: Job, attempt: Attempt, *, after_stops: bool = False) -> Job:
    """Let the job hold its instances; the training job may be created until the lease runs out.

    ``after_stops`` says that other jobs were stopped to make this possible.
    """
    assert attempt.max_runtime == attempt_run_time(job, attempt.shape), attempt
    claimed = replace(job.moved_to(JobState.STARTING), live=attempt, waiting=None)
    if job.elastic is not None and job.elastic.wanted is not None:  # it kept the room itself
        return replace(claimed, elastic=replace(job.elastic, wanted=None))
    return with_room_made(claimed) if after_stops else claimed


def recorded(job: Job, *, training_job_arn: str, now: datetime) -> Job:
    """Record that SageMaker has the attempt."""
    live = job.live_attempt
    progress = Progress(
        training_job_arn=training_job_arn,
        status="InProgress",
        secondary_status="Starting",
        training_since=live.training_since,
    )
    return _taken(job, replace(live, progress=progress), now=now)


def _taken(job: Job, live: Attempt, *, now: datetime) -> Job:
    running = job if job.state is not JobState.STARTING else job.moved_to(JobState.RUNNING)
    # That SageMaker took the request says nothing about instances: those are forgotten once it trains.
    starts = StartTrouble(no_capacity=job.starts.no_capacity)
    taken = replace(running, live=live, started_at=job.started_at or now, starts=starts)
    taken = run_time_granted(taken)
    return taken if live.training_since is None else with_training_seen(taken)


def without_additions(job: Job) -> Job:
    """Drop what the policy adds to the request, if AWS accepts the job only without it."""
    return replace(job, live=replace(job.live_attempt, keep_alive=None))


def sent(job: Job, request: Mapping[str, Any]) -> Job:
    """Record the request's pending time with the attempt."""
    pending = request["StoppingCondition"].get("MaxPendingTimeInSeconds")
    max_pending = None if pending is None else timedelta(seconds=pending)
    return replace(job, live=replace(job.live_attempt, max_pending=max_pending))


def as_sent(job: Job, attempt: Attempt) -> Job:
    """Return the job with its live attempt as the claimed one was sent."""
    live = replace(job.live_attempt, keep_alive=attempt.keep_alive, max_pending=attempt.max_pending)
    return replace(job, live=live)


def back_in_turn(job: Job, reason: Reason) -> Job:
    """Put the attempt back in its turn, not charged, as the account called AWS too often."""
    return replace(job.moved_to(JobState.PENDING), live=None, not_before=None, waiting=reason)


def refused_by_account(job: Job, refusals: AccountRefusals, text: str) -> Job:
    """Put the attempt into a back-off of its own, not charged, as a limit of the account forbids it."""
    times = "once" if refusals.count == 1 else f"{refusals.count} times in a row"
    return replace(
        job.moved_to(JobState.PENDING),
        live=None,
        not_before=refusals.again_at,
        waiting=Reason(code=ReasonCode.ACCOUNT_LIMIT, message=f"AWS refused to start it {times}: {text}"),
        starts=replace(job.starts, by_account=refusals, by_request=None),  # of limits AWS asks last
    )


def put_back(job: Job, *, reason: Reason, now: datetime) -> Job:
    """Put the attempt into a back-off, not charged, as its start was refused for now."""
    return replace(
        job.moved_to(JobState.PENDING),
        live=None,
        not_before=now + backoff(job.spec.entry_id, job.starts.refused),
        waiting=Reason(code=job.starts.refused_with or ReasonCode.BACKOFF, message=reason.message),
        starts=replace(job.starts, refused=job.starts.refused + 1),
    )


def unclaimed(job: Job) -> Job:
    """Let the attempt wait again at once, as its lease ran out without a training job."""
    return replace(job.moved_to(JobState.PENDING), live=None, not_before=None)


def puzzled(job: Job, *, message: str, now: datetime) -> Job:
    """Count an error of unknown kind; after a few of them the job is given up."""
    if job.starts.unknown_errors + 1 >= MAX_UNKNOWN_ERRORS:
        return failed(job, reason=Reason(code=ReasonCode.FAILED_TO_START, message=message), now=now)
    waiting = put_back(job, reason=Reason(code=ReasonCode.UNKNOWN, message=message), now=now)
    starts = replace(waiting.starts, unknown_errors=job.starts.unknown_errors + 1)
    return replace(waiting, starts=starts)


def faulted(job: Job, *, message: str, now: datetime) -> Job:
    """Count a pass that could not start it by a fault of ours; after a few the job waits out a back-off."""
    faults = (job.starts.faults or 0) + 1
    counted = replace(job, starts=replace(job.starts, faults=faults))
    if faults < MAX_FAULTS or not job.is_waiting:
        return counted
    wait = backoff(job.spec.entry_id, faults - MAX_FAULTS, first=FIRST_FAULT_WAIT, most=LONGEST_FAULT_WAIT)
    return replace(counted, not_before=now + wait, waiting=Reason(code=ReasonCode.BACKOFF, message=message))


def failed(job: Job, *, reason: Reason, now: datetime) -> Job:
    return replace(job.moved_to(JobState.FAILED), live=None, waiting=None, reason=reason, ended_at=now)


def unparked(job: Job) -> Job:
    """End a back-off; the words with which AWS refused the job still hold."""
    return replace(job, not_before=None, waiting=job.waiting if job.starts.refused_with else None)


def explained(job: Job, reason: Reason) -> Job:
    return replace(job, waiting=reason)


def preempted_for(job: Job, preemptor: WaitingJob, *, reclaims: bool = False) -> Job:
    """Ask the job to stop so that another can start; it is requeued. ``reclaims``: a loan is called back."""
    message = f"made room for {known_as(preemptor, to=job.spec.team)}"
    for_whom = Preemptor(name=preemptor.name, team=preemptor.team, reclaims=reclaims or None)
    live = replace(job.live_attempt, preempted_for=for_whom)
    reason = Reason(code=ReasonCode.PREEMPTION, message=message)
    return replace(job.moved_to(JobState.PREEMPTING), live=live, reason=reason)


def drained(job: Job, why: str) -> Job:
    """Ask the job to stop for the calendar, a plan or another team's reservation; it is requeued."""
    return replace(job.moved_to(JobState.PREEMPTING), reason=Reason(code=ReasonCode.WINDOW, message=why))


def stop_told(job: Job, *, told: bool = True) -> Job:
    """Record that SageMaker accepted the stop; or, if seen still running, did not."""
    return replace(job, live=replace(job.live_attempt, stop_sent=told))


def not_stopped(job: Job, why: str) -> Job:
    """Record that AWS denies the stop of an unmanaged job: it runs on, and its owner is notified."""
    return replace(job, waiting=Reason(code=ReasonCode.NOT_STOPPED, message=why))


def missing(job: Job, *, since: datetime) -> Job:
    """Record that SageMaker does not find its training job, which may be an error of SageMaker's."""
    return replace(job, live=replace(job.live_attempt, missing_since=since))


def found_again(job: Job) -> Job:
    return replace(job, live=replace(job.live_attempt, missing_since=None))


def idle(job: Job, *, since: datetime | None, stop_due: datetime | None = None) -> Job:
    """Record that its GPUs are idle, and when that is to end it; ``since`` None: they work again."""
    live = job.live_attempt
    return replace(job, live=replace(live, watch=replace(live.watch, idle_since=since, stop_due=stop_due)))


def underused(job: Job, *, since: datetime | None, stop_due: datetime | None = None) -> Job:
    """Record that its GPUs are underused, and when that is to end it; ``since`` None: not any more."""
    live = job.live_attempt
    watch = replace(live.watch, underused_since=since, underused_stop_due=stop_due)
    return replace(job, live=replace(live, watch=watch))


def stopped_by_rule(job: Job, reason: Reason, *, requeues: bool) -> Job:
    """Stop a job for what a rule of the policy says of its GPUs or its loss.

    Args:
        job: A running job.
        reason: What was seen, and when.
        requeues: Whether it resumes from its checkpoint, which is not charged.
    """
    assert job.state is JobState.RUNNING, job.state
    return replace(job.moved_to(JobState.PREEMPTING if requeues else JobState.STOPPING), reason=reason)


def checkpoint_seen(job: Job, written_at: datetime | None) -> Job:
    """Record its newest checkpoint; one older than the known one changes nothing."""
    live = job.live_attempt
    known = [at for at in (written_at, live.checkpoint.last) if at is not None]
    checkpoint = replace(live.checkpoint, last=max(known, default=None))
    return replace(job, live=replace(live, checkpoint=checkpoint))


def reuse_settled(job: Job, left: Observation | None) -> Change:
    """Settle, now that the attempt trains, what became of the warm pool that it was claimed with.

    If SageMaker started it elsewhere and still keeps the pool, the pool is counted again.

    Args:
        job: The job, whose live attempt has ``reuses``.
        left: SageMaker's report on the training job that left the warm pool.
    """
    live, kept = job.live_attempt, _still_warm(job, left)
    settled = replace(live, claim=replace(live.claim, reuses=None), warm_start=kept is None or None)
    return Change(before=job, after=replace(job, live=settled), leaves_warm=kept)


def claim_undone(job: Job, after: Job, left: Observation | None) -> Change:
    """Undo a claim whose attempt was not created: its instances are free, its warm pool is warm again.

    Args:
        job: The job with the live attempt.
        after: The job without it.
        left: As for ``reuse_settled``; None also if the attempt was claimed without a warm pool.
    """
    ended = None
    if after.ended_at is not None:
        end = AttemptEnd(at=after.ended_at, reason=after.reason)
        ended = replace(job.live_attempt, end=end, bill=Bill(cents=0))
    return Change(before=job, after=after, ended=ended, leaves_warm=_still_warm(job, left))


def _still_warm(job: Job, left: Observation | None) -> WarmPool | None:
    """Return the warm pool that the live attempt was claimed with, if SageMaker still keeps it."""
    live = job.live_attempt
    if left is None or left.warm_status != WARM_AVAILABLE or left.ended_at is None:
        return None
    assert live.shape.warm_key is not None, live
    return WarmPool(
        training_job_name=left.training_job_name,
        team=job.spec.team,
        vector=live.vector,
        warm_key=live.shape.warm_key,
        since=left.ended_at,
        expires_at=left.ended_at + (live.keep_alive or timedelta()),
        job=job.name,
        month=live.claim.month,
        usd_per_hour=live.claim.usd_per_hour,
        billed_from=live.claim.at,
    )


def held(job: Job, reason: Reason) -> Job:
    """Hold the job: only a release brings it back into its turn."""
    return replace(job.moved_to(JobState.HELD), not_before=None, waiting=reason)


def released(job: Job) -> Job:
    """Put a held job back in its turn, or to the jobs that it waits for; its past attempts still count."""
    back = JobState.PREEMPTED if job.preemptions else JobState.PENDING
    released_job = replace(job.moved_to(back), waiting=None)
    return waiting_for_others(released_job) if job.waits_for_others else released_job


def reranked(job: Job, *, priority: int, score: int, ranked_by: str) -> Job:
    """Give the job another priority, or the score of another order in its pool."""
    return replace(job, priority=priority, score=score, ranked_by=ranked_by)


def cancelled(job: Job, *, reason: Reason, now: datetime) -> Job:
    """Stop the job for a user: at once while it waits, else as soon as SageMaker has stopped the attempt."""
    if job.is_live:
        stopping = job if job.state is JobState.STOPPING else job.moved_to(JobState.STOPPING)
        return replace(stopping, reason=reason)
    stopped = job.moved_to(JobState.STOPPED)
    return replace(stopped, waiting=None, not_before=None, reason=reason, ended_at=now)


def never_created(job: Job, *, now: datetime) -> Job:
    """End a job that a user stopped between claim and create, and whose create never came."""
    return replace(job.moved_to(JobState.STOPPED), live=None, ended_at=now)


def progressed(job: Job, seen: Observation, *, now: datetime) -> Job:
    """Record SageMaker's report on a live attempt that has not ended."""
    trained = seen.trained_before
    whole = None if trained is None else timedelta(seconds=int(trained.total_seconds()))
    return _taken(job, replace(as_seen(job.live_attempt, seen), trained=whole), now=now)
