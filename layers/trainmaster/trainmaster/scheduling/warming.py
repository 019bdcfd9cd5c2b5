"""Warm pools as SageMaker keeps them: lengthen, give up, and find out what became of one.

The row says what is counted; it goes only when SageMaker says that the pool is gone. A crash between a call
and its row leaves a row that ``settle`` corrects in a later pass.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster import lifecycle
from trainmaster.errors import LostRaceError, StillWarmError
from trainmaster.jobs import Job
from trainmaster.lifecycle import WARM_AVAILABLE
from trainmaster.ports import Change
from trainmaster.scheduling.context import Pass
from trainmaster.scheduling.snapshot import WarmPool


def keep(pool: WarmPool, until: datetime, now: Pass) -> None:
    """Have it kept until then; one that is gone is settled instead."""
    if now.training.keep_alive(pool.training_job_name, until - pool.since):
        now.store.change_warm(now.pool, pool, replace(pool, expires_at=until))
    else:
        settle(pool, now)


def release(pool: WarmPool, now: Pass) -> None:
    """Give it up; its instances count until SageMaker says that it is gone."""
    releasing = pool if pool.releasing else replace(pool, releasing=True)
    if releasing != pool:
        now.store.change_warm(now.pool, pool, releasing)
    now.training.keep_alive(pool.training_job_name, timedelta())
    settle(releasing, now)


def settle(pool: WarmPool, now: Pass) -> None:
    """Stop counting a pool that SageMaker does not keep any more.

    Raises:
        StillWarmError: It does; a later pass asks again.
    """
    seen = now.training.describe(pool.training_job_name)
    if seen is not None and seen.warm_status == WARM_AVAILABLE:
        raise StillWarmError(f"SageMaker still keeps the warm pool of {pool.training_job_name}")
    now.store.change_warm(now.pool, pool, None)


def verify_reuse(job: Job, now: Pass) -> None:
    """Did the new attempt really land in the warm pool it was claimed with?

    If SageMaker started it elsewhere and still keeps the pool, the pool is counted again.
    """
    current = now.reader.job(job.name)
    if current is None or current.live is None or current.live.reuses is None:
        return
    if current.live.training_job_arn is None:
        return
    after = lifecycle.reuse_settled(current)
    change = Change(before=current, after=after, leaves_warm=_still_there(current, now))
    try:
        now.store.commit([change], at=now.clock())
    except LostRaceError:
        return  # whoever was faster leaves the question to the reconciler


def _still_there(job: Job, now: Pass) -> WarmPool | None:
    assert job.live is not None
    assert job.live.reuses is not None
    assert job.live.shape.warm_key is not None
    seen = now.training.describe(job.live.reuses)
    if seen is None or seen.warm_status != WARM_AVAILABLE or seen.ended_at is None:
        return None
    return WarmPool(
        training_job_name=job.live.reuses,
        team=job.spec.team,
        vector=job.live.vector,
        warm_key=job.live.shape.warm_key,
        since=seen.ended_at,
        expires_at=seen.ended_at + (job.live.keep_alive or timedelta()),
    )
