"""What the queue and the pool keep of a job: small rows, derived from the job and from nothing else."""

from trainmaster.jobs import Job
from trainmaster.lifecycle import ends_by
from trainmaster.scheduling.snapshot import RunningJob, WaitingJob


def waiting_entry(job: Job) -> WaitingJob:
    return WaitingJob(
        name=job.name,
        ver=job.ver,
        team=job.spec.team,
        state=job.state,
        vector=job.spec.vector,
        priority=job.priority,
        score=job.score,
        submitted_at=job.spec.submitted_at,
        not_before=job.not_before,
        waiting_code=job.waiting.code if job.waiting else None,
    )


def running_entry(job: Job) -> RunningJob:
    live = job.live
    assert live is not None, f"{job.name} has no live attempt"
    return RunningJob(
        name=job.name,
        ver=job.ver,
        team=job.spec.team,
        state=job.state,
        vector=job.spec.vector,
        priority=job.priority,
        score=job.score,
        claimed_at=live.claimed_at,
        lease_until=live.lease_until,
        training_job_name=live.training_job_name,
        known_to_sagemaker=live.training_job_arn is not None,
        training_since=live.training_since,
        ends_by=ends_by(job),
        stop_sent=live.stop_sent,
        preemptible=job.spec.preemptible,
        has_checkpoint=job.spec.has_checkpoint,
        preemptions=job.preemptions,
    )
