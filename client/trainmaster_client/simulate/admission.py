"""What becomes of a past job under a policy: the pool that it waits in, or why it is refused."""

from dataclasses import dataclass
from datetime import timedelta

from trainmaster.core.jobs.instances import Capacity, CapacityType, Shape, vector_text
from trainmaster.core.jobs.model import Job, JobSpec, JobState
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.order import score_of
from trainmaster.core.policy import Policy, PoolPolicy

from trainmaster_client.simulate.past_jobs import PastJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    pool: PoolPolicy
    shape: Shape
    priority: int
    """As asked for, or the team's ceiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    reason: str


def admit(job: PastJob, policy: Policy) -> Admitted | Refused:
    """As a submission would be, as far as the history says what was asked for."""
    pool = policy.pool_of(job.instances)
    if pool is None:
        return Refused(reason=_no_pool(job, policy))
    vector = {Capacity(one, CapacityType(job.capacity_type)): count for one, count in job.instances.items()}
    there = pool_vector(pool)
    for capacity, count in sorted(vector.items()):
        if count > there.get(capacity, 0):
            has = f"{there.get(capacity, 0)} {capacity.capacity_type} {capacity.instance_type}"
            return Refused(reason=f"asks for {count}, but pool {pool.name} has {has} in all")
    team = policy.team(job.team)
    priority = job.priority if team is None else min(job.priority, team.max_priority)
    is_alike = len(vector) == 1 and job.capacity_type == "on-demand"
    key = f"{job.team}/{vector_text(vector)}" if is_alike else None
    return Admitted(pool=pool, shape=Shape(vector=vector, warm_key=key), priority=priority)


def _no_pool(job: PastJob, policy: Policy) -> str:
    homeless = sorted(one for one in job.instances if policy.pool_of([one]) is None)
    if homeless:
        return f"{', '.join(homeless)} belongs to no pool"
    return f"{', '.join(sorted(job.instances))} belong to different pools"


def submitted(job: PastJob, found: Admitted, *, predicted: timedelta | None) -> Job:
    """The job as it enters the queue."""
    at = job.submitted_at
    spec = JobSpec(
        name=job.name,
        entry_id=job.entry_id or job.name,
        team=job.team,
        pool=found.pool.name,
        submitted_by=job.submitted_by,
        submitted_at=at.replace(microsecond=at.microsecond // 1000 * 1000),  # the table keeps milliseconds
        shapes=(found.shape,),
        preemptible=job.preemptible,
        max_runtime=job.max_runtime,
        max_wait=None,
        body_hash=job.name,
        checkpoint_uri=None if job.saves_every is None else f"s3://checkpoints/{job.name}",
        predicted=predicted,
    )
    return Job(
        spec=spec,
        state=JobState.PENDING,
        priority=found.priority,
        score=score_of(spec, found.priority, found.pool),
        ranked_by=found.pool.order_key,
    )
