"""Build the attempt that a start makes, from the job, the planned start and the policy."""

from datetime import datetime, timedelta

from trainmaster.core.costs.ledger import month_of
from trainmaster.core.jobs import run_time
from trainmaster.core.jobs.attempts import Attempt, Claim
from trainmaster.core.jobs.instances import CapacityType, Shape
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.steps import LEASE
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.past_use import HALF_LIFE
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.request.request import attempt_name

LONGEST_KEEP_ALIVE = timedelta(seconds=21_600)
"""Longest KeepAlivePeriodInSeconds. Source: SageMaker API reference."""


def attempt_for(job: Job, start: Start, *, pool: PoolPolicy, policy: Policy, at: datetime) -> Attempt:
    """Return the attempt that is claimed, and then created under its name.

    Args:
        job: The job as it waits.
        start: The planned start.
        pool: The policy of its pool.
        policy: The policy in force.
        at: Instant of the claim.
    """
    shape, charge = start.shape, start.charge
    max_runtime = run_time.attempt_run_time(job, shape)
    spot = shape.capacity_type is CapacityType.SPOT
    max_wait = (job.max_wait or max_runtime + policy.spot_max_wait) if spot else None
    half_life = pool.order.fair_share.half_life
    keep_alive = min(pool.warm_pool.keep_alive, job.spec.keep_alive or LONGEST_KEEP_ALIVE)
    return Attempt(
        number=job.attempt,
        training_job_name=attempt_name(job.name, job.spec.entry_id, job.attempt),
        shape=shape,
        max_runtime=max_runtime,
        plan_arn=_plan_arn(shape, pool),
        max_wait=max_wait,
        keep_alive=keep_alive if shape.warm_key and keep_alive else None,
        claim=Claim(
            at=at,
            lease_until=at + LEASE,
            reuses=start.reuses.training_job_name if start.reuses else None,
            cold_startup=start.cold_startup,
            usd_per_hour=charge.usd_per_hour if charge else None,
            reserved_cents=charge.cents if charge else 0,
            month=charge.month if charge else month_of(at),
            half_life=half_life if half_life != HALF_LIFE else None,
        ),
    )


def _plan_arn(shape: Shape, pool: PoolPolicy) -> str | None:
    """Return the ARN of the plan whose instances the shape is of; None if it is of none."""
    plans = {capacity.plan for capacity in shape.vector if capacity.is_plan}
    return next((entry.arn for entry in pool.plans if entry.name in plans), None)
