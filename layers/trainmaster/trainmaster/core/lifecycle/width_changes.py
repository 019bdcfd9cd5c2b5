"""Changes of an elastic job's width: its stops for them, and what the end of an attempt teaches."""

from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.jobs.attempts import Attempt, Preemptor, Reason
from trainmaster.core.jobs.elastic_state import NEVER_RAN, ElasticState
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import Code, ReasonCode
from trainmaster.core.jobs.run_time import (
    LEAST_RUNTIME,
    MAX_EXTENSIONS,
    counted_time,
    runtime_left,
    trained_by,
)
from trainmaster.core.planning.snapshot import WaitingJob, known_as


def shrunk_for(job: Job, preemptor: WaitingJob, *, width: int, now: datetime, reclaims: bool = False) -> Job:
    """Ask an elastic job to stop so that another can start; it comes back narrower, in the room it keeps."""
    live = job.live_attempt
    given = live.shape.instances - width
    whom = known_as(preemptor, to=job.spec.team)
    message = f"gave {given} of its {live.shape.instances} instances to {whom}, and continues with {width}"
    for_whom = Preemptor(name=preemptor.name, team=preemptor.team, reclaims=reclaims or None)
    stopping = replace(job, live=replace(live, preempted_for=for_whom))
    return _to_width(stopping, width, Reason(code=ReasonCode.SHRINK, message=message), now=now)


def grown(job: Job, why: str, *, width: int, now: datetime) -> Job:
    """Ask an elastic job to stop; it comes back wider, on instances that no other job can use."""
    return _to_width(job, width, Reason(code=ReasonCode.GROW, message=why), now=now)


def _to_width(job: Job, width: int, reason: Reason, *, now: datetime) -> Job:
    state = replace(job.elastic or NEVER_RAN, wanted=width, resized_at=now)
    return replace(job.moved_to(JobState.PREEMPTING), elastic=state, reason=reason)


def is_prolonged(job: Job) -> bool:
    """Tell whether the live attempt asks for more run time than the request, as it is narrow."""
    return job.spec.widths is not None and job.live_attempt.max_runtime > runtime_left(job)[0]


def run_time_granted(job: Job) -> Job:
    """Note that AWS accepted the run time of the live attempt of an elastic job."""
    if job.spec.widths is None:
        return job
    state = job.elastic or NEVER_RAN
    limits = state.limits.after_grant(job.live_attempt.max_runtime)
    return job if limits == state.limits else replace(job, elastic=replace(state, limits=limits))


def run_time_refused(job: Job, refused: Job) -> Job:
    """Note, with a refusal for a limit of the account, that the prolonged run time may be the reason.

    The next attempt asks for less: it is wider, or cut to what was granted before. A quota of the instances
    themselves is another refusal.

    Args:
        job: The job with the attempt live.
        refused: The job as it waits after the refusal.
    """
    state = refused.elastic or NEVER_RAN
    limits = state.limits.after_refusal(job.live_attempt.max_runtime)
    return replace(refused, elastic=replace(state, limits=limits))


def is_narrowable(job: Job) -> bool:
    """Tell whether the next attempt may be narrower than the live one."""
    return job.spec.widths is not None and job.live_attempt.shape.instances > job.spec.widths.least


def width_refused(job: Job, refused: Job, *, left: int | None) -> Job:
    """Note, with a refusal for a limit of the account, how wide the job may be from now on.

    Args:
        job: The job with the attempt live.
        refused: The job as it waits after the refusal.
        left: Instances that AWS would have granted; None: it did not say, so half of the width is tried.
    """
    widths, width = job.spec.widths, job.live_attempt.shape.instances
    if widths is None:
        return refused
    narrower = width // 2 if left is None else min(left, width - 1)
    state = replace(refused.elastic or NEVER_RAN, account_width=max(narrower, widths.least))
    return replace(refused, elastic=state)


def has_steps_left(job: Job, seen: Observation | None, *, until: datetime) -> bool:
    """Tell whether a job comes back whose attempt ran out of time at less than its largest width.

    Its time at a narrow width may have been cut to what SageMaker or the account allow, or too short by what
    was kept of its start. As for any job, too little run time is prolonged only a few times.
    """
    live, widths = job.live_attempt, job.spec.widths
    if widths is None or live.shape.instances >= widths.largest or job.state is JobState.STOPPING:
        return False
    progress = (job.elastic or NEVER_RAN).progress
    if progress is not None and progress.is_done:
        return False
    used = job.checkpointed + counted_time(job.spec, live, trained_by(until, live, seen))
    return job.spec.max_runtime - used >= LEAST_RUNTIME or job.extensions < MAX_EXTENSIONS


def run_time_over(job: Job) -> Reason:
    live, largest = job.live_attempt, job.spec.widths.largest if job.spec.widths else 0
    message = (
        f"its MaxRuntimeInSeconds at {live.shape.instances} of {largest} instances,"
        f" {int(live.max_runtime.total_seconds())}, was over while steps were left"
    )
    return Reason(code=ReasonCode.MAX_RUNTIME_AT_WIDTH, message=message)


def used_up(code: Code, *, trained: timedelta, checkpointed: timedelta) -> timedelta:
    """Return the training that uses up the job's run time: what is safe, or all if the time was over."""
    return trained if code is ReasonCode.MAX_RUNTIME_AT_WIDTH else checkpointed


def after_attempt(job: Job, attempt: Attempt, code: Code, *, is_retried: bool) -> ElasticState | None:
    """Return the state of an elastic job after an attempt; None for other jobs.

    Args:
        job: The job with the attempt live.
        attempt: The attempt as it ended.
        code: Code of the reason of its end.
        is_retried: Whether it failed, and is retried for that.
    """
    widths = job.spec.widths
    if widths is None:
        return None
    state = job.elastic or NEVER_RAN
    if attempt.training_since is not None:
        state = state.trained()
    if is_retried or code is ReasonCode.CAPACITY:
        state = state.failed_at(attempt.shape.instances, widths)
    return None if state == NEVER_RAN else state
