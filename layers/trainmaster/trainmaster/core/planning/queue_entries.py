"""Entries of jobs in the queue and the pool: small rows, derived from the job and from nothing else."""

from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.elastic_state import NEVER_RAN
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.run_time import ends_by, least_length, likely_left, runtime_left
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob, WaitingJob


def entry_of(job: Job) -> WaitingJob | RunningJob | None:
    """Return the entry of a job; None if it is final."""
    if job.is_final:
        return None
    return running_entry(job) if job.is_live else waiting_entry(job)


def waiting_entry(job: Job) -> WaitingJob:
    return WaitingJob(
        name=job.name,
        ver=job.ver,
        team=job.spec.team,
        state=job.state,
        shapes=job.shapes,
        choice=job.spec.choice,
        priority=job.priority,
        score=job.score,
        ranked_by=job.ranked_by,
        submitted_at=job.queued_since or job.spec.submitted_at,
        runs_at_most=runtime_left(job)[0],
        max_wait=job.max_wait,
        has_checkpoint=job.spec.has_checkpoint,
        left_spot=job.spot.left,
        predicted=likely_left(job),
        trained=least_length(job),
        likely=job.spec.likely,
        not_before=job.not_before,
        refused=job.starts.by_account,
        preemptible=None if job.spec.preemptible else False,
        own_quota=job.spec.own_quota,
        role=job.spec.role,
        turned_down=job.starts.by_request.count if job.starts.by_request else None,
        futile=job.futile,
        array=job.spec.array.name if job.spec.array else None,
        widths=job.spec.widths,
    )


def running_entry(job: Job) -> RunningJob:
    live, elastic, spec = job.live_attempt, job.elastic or NEVER_RAN, job.spec
    return RunningJob(
        name=job.name,
        ver=job.ver,
        team=spec.team,
        state=job.state,
        vector=live.vector,
        priority=job.priority,
        score=job.score,
        claimed_at=live.claim.at,
        lease_until=live.claim.lease_until,
        training_job_name=live.training_job_name,
        known_to_sagemaker=live.training_job_arn is not None,
        training_since=live.training_since,
        stop_sent=live.stop_sent,
        preemptible=spec.preemptible,
        has_checkpoint=spec.has_checkpoint,
        preemptions=job.preemptions - (job.comebacks.reclaims or 0),
        own_quota=spec.own_quota,
        array=spec.array.name if spec.array else None,
        widths=spec.widths,
        progress=elastic.progress,
        resized_at=elastic.resized_at,
        account_width=elastic.account_width,
        expected=_expected_run(job, live),
        checkpoint=live.checkpoint,
        cents_per_hour=None if live.claim.usd_per_hour is None else int(live.claim.usd_per_hour * 100),
        warm_key=live.shape.warm_key if live.keep_alive else None,
        ranked_by=job.ranked_by,
        stops=job.stopped_for.recent if job.stopped_for else None,
        preempted_for=live.preempted_for.name if live.preempted_for else None,
        watch=live.watch,
        unmonitored=live.unmonitored.code if live.unmonitored else None,
        reuses=live.claim.reuses,
    )


def _expected_run(job: Job, live: Attempt) -> ExpectedRun:
    return ExpectedRun(
        at_most=live.max_runtime,
        ends_by=ends_by(job),
        predicted=likely_left(job),
        trained=least_length(job),
        likely=job.spec.likely,
    )
