"""Notices about what the account does not give the stack: warm instances, access to buckets."""

from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.steps import MAX_FAULTS
from trainmaster.core.outbox.messages import Notice
from trainmaster.core.outbox.texts.refusals import PlatformSubject, platform_notice
from trainmaster.core.outbox.texts.wording import Words, quoted


def checkpoints_unreadable_notice(uri: str, *, job: str) -> Notice:
    """Return the notice that S3 shows neither ``status.json`` nor the listing.

    The checkpoints' age is unknown.
    """
    return platform_notice(
        PlatformSubject.CHECKPOINTS_UNREADABLE,
        Words(
            what=f"The checkpoints of job {job} in {quoted(uri)} cannot be read: their age is unknown.",
            why="Victims of preemptions are chosen by run time there, and stale checkpoints go unnoticed.",
            todo=(
                "Deploy the stack with the bucket in the parameter CheckpointBuckets and, if it is encrypted"
                " with a KMS key of yours, with that key in CheckpointKmsKeyArns; then look at the bucket's"
                " own policy. `trainmaster doctor` compares them."
            ),
        ),
        job=job,
    )


def plan_unreadable_notice(arn: str, pool: str, why: str) -> Notice:
    """Return the notice that a training plan cannot be described, so that changes of it go unseen."""
    return platform_notice(
        PlatformSubject.PLAN_UNREADABLE,
        Words(
            what=f"Training plan {quoted(arn)} of pool {pool} cannot be described: {quoted(why)}.",
            why="What is known of its windows holds, and they pass by the clock; changes of the plan are not"
            " seen. Nothing starts on a plan that was never described.",
            todo="Compare the ARN in `plans` with the account, and allow `reconcile` to call"
            " sagemaker:DescribeTrainingPlan. It is tried again every few minutes.",
        ),
    )


def plan_unusable_notice(arn: str, pool: str, why: str) -> Notice:
    """Return the notice that SageMaker describes a training plan on which no training job can run."""
    return platform_notice(
        PlatformSubject.PLAN_UNREADABLE,
        Words(
            what=f"No job can run on training plan {quoted(arn)} of pool {pool}: {quoted(why)}.",
            why="A plan is bought for one kind of target, which cannot be changed. Nothing starts on it.",
            todo="Remove it from `plans` in the policy, or write the plan that was bought for training jobs.",
        ),
    )


def job_fault_notice(change: Change) -> Notice | None:
    """Return a notice, once, when a job has made its passes fail a few times in a row."""
    before, job = change.before.starts.faults or 0, change.after
    if not before < MAX_FAULTS <= (job.starts.faults or 0) or job.waiting is None:
        return None
    return platform_notice(
        PlatformSubject.JOB_FAULT,
        Words(
            what=f"Job {job.name} cannot be started: each pass that tries it fails. It is skipped for now.",
            why=quoted(job.waiting.message),
            todo="This is a fault of trainmaster: the log of `schedule` says where it comes from.",
            undo=f"`trainmaster cancel {job.name}` ends the job; other jobs do not wait for it.",
        ),
        job=job.name,
    )


def warm_pool_not_kept_notice(attempt: Attempt, *, job: str) -> Notice:
    """Return the notice that SageMaker kept no instances although a keep-alive was requested."""
    types = ", ".join(sorted({capacity.instance_type for capacity in attempt.vector}))
    assert attempt.keep_alive is not None, attempt
    seconds = int(attempt.keep_alive.total_seconds())
    return platform_notice(
        PlatformSubject.WARM_POOLS_NOT_KEPT,
        Words(
            what=f"SageMaker kept no warm instances ({types}) of training job {attempt.training_job_name}.",
            why=f"{seconds} s were asked for (`warm_pool.keep_alive`). The usual cause is the account's quota"
            ' "for training warm pool usage" of the type, which is 0 until it is raised.',
            todo="Ask Service Quotas for it, or set `warm_pool.keep_alive` of the pool to 0s.",
            undo="Nothing is lost: the instances are free for the next job, which starts cold.",
        ),
        job=job,
    )
