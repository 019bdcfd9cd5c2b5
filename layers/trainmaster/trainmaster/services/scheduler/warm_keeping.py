"""Have SageMaker keep warm pools longer or give them up, and stop counting those that are gone."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from trainmaster.core.errors import StillWarmError
from trainmaster.core.lifecycle.settlement import WARM_AVAILABLE
from trainmaster.core.planning.changes import WarmPoolChange, WarmPoolExtended, WarmPoolGivenUp, WarmPoolGone
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.services.scheduler.context import PassContext

OVERDUE = timedelta(minutes=2)
"""How long after its expiry a pool that still exists counts as kept for longer than its row says."""


def change_warm_pool(change: WarmPoolChange, context: PassContext) -> None:
    """Have SageMaker make the change, then note it. Raises StillWarmError if a pool is not gone yet."""
    match change:
        case WarmPoolExtended(warm_pool=warm_pool, until=until):
            keep(warm_pool, until, context)
        case WarmPoolGivenUp(warm_pool=warm_pool, because=because):
            give_up(warm_pool, because, context)
        case WarmPoolGone(warm_pool=warm_pool):
            settle(warm_pool, context)
        case _:
            assert_never(change)


def keep(warm_pool: WarmPool, until: datetime, context: PassContext) -> None:
    """Have the pool kept until then; one that is gone is settled instead."""
    if context.training.keep_alive(warm_pool.training_job_name, until - warm_pool.since):
        context.store.change_warm(
            context.pool, warm_pool, replace(warm_pool, expires_at=until), at=context.clock()
        )
    else:
        settle(warm_pool, context)


def give_up(warm_pool: WarmPool, because: str, context: PassContext) -> None:
    """Ask SageMaker to give the pool up; its instances count until SageMaker confirms that it is gone."""
    releasing = warm_pool if warm_pool.releasing else replace(warm_pool, releasing=True, because=because)
    if releasing != warm_pool:
        context.store.change_warm(context.pool, warm_pool, releasing, at=context.clock())
    context.training.keep_alive(warm_pool.training_job_name, timedelta())


def settle(warm_pool: WarmPool, context: PassContext) -> None:
    """Stop counting a pool that is gone, and bill it for the time that SageMaker reports.

    Raises:
        StillWarmError: SageMaker still keeps it; a later pass asks again.
    """
    seen = context.training.describe(warm_pool.training_job_name)
    if seen is not None and seen.warm_status == WARM_AVAILABLE:
        if warm_pool.releasing or context.clock() - warm_pool.expires_at > OVERDUE:
            context.training.keep_alive(warm_pool.training_job_name, timedelta())
        raise StillWarmError(f"SageMaker still keeps the warm pool of {warm_pool.training_job_name}")
    retained = seen.retained if seen is not None else None
    context.store.change_warm(context.pool, warm_pool, None, at=context.clock(), retained=retained)
