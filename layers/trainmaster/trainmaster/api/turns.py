"""How past use moves the jobs of each team in a pool's order, for lists and positions."""

from collections.abc import Mapping

from trainmaster.api.request_context import RequestContext
from trainmaster.core.planning.fair_share import shifts_of
from trainmaster.core.policy import PoolPolicy


def shifts_in(pool: PoolPolicy | None, context: RequestContext) -> Mapping[str, int] | None:
    """Milliseconds to add to the scores of each team's jobs; None: there is no fair share."""
    if pool is None or not pool.order.fair_share.weight:
        return None
    state = context.outside.reader.pool_state(pool.name)
    return shifts_of(state.shares(pool, now=context.outside.clock()), pool)
