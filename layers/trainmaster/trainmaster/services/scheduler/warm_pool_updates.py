"""Warm pools as SageMaker keeps them: lengthen, give up, and find out what became of one.

The row says what is counted; it goes only when SageMaker says that the pool is gone. A crash between a call
and its row leaves a row that ``settle`` corrects in a later pass.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.errors import StillWarmError
from trainmaster.core.lifecycle.ending import WARM_AVAILABLE
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.services.scheduler.context import Pass

OVERDUE = timedelta(minutes=2)
"""A pool that is still there so long after its time was kept for longer than the row knows."""


def keep(pool: WarmPool, until: datetime, now: Pass) -> None:
    """Have it kept until then; one that is gone is settled instead."""
    if now.training.keep_alive(pool.training_job_name, until - pool.since):
        now.store.change_warm(now.pool, pool, replace(pool, expires_at=until), at=now.clock())
    else:
        settle(pool, now)


def release(pool: WarmPool, now: Pass) -> None:
    """Give it up; its instances count until SageMaker says that it is gone."""
    releasing = pool if pool.releasing else replace(pool, releasing=True)
    if releasing != pool:
        now.store.change_warm(now.pool, pool, releasing, at=now.clock())
    now.training.keep_alive(pool.training_job_name, timedelta())
    settle(releasing, now)


def settle(pool: WarmPool, now: Pass) -> None:
    """Stop counting a pool that SageMaker does not keep any more.

    Raises:
        StillWarmError: It does; a later pass asks again.
    """
    seen = now.training.describe(pool.training_job_name)
    if seen is not None and seen.warm_status == WARM_AVAILABLE:
        if pool.releasing or now.clock() - pool.expires_at > OVERDUE:
            now.training.keep_alive(pool.training_job_name, timedelta())
        raise StillWarmError(f"SageMaker still keeps the warm pool of {pool.training_job_name}")
    now.store.change_warm(now.pool, pool, None, at=now.clock())
