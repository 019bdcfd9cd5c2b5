"""Why jobs wait, as the planner says it at this instant: what a pass wrote may be older than the queue."""

from collections.abc import Mapping
from types import MappingProxyType

from trainmaster.api.visit import Visit
from trainmaster.jobs import Reason
from trainmaster.policy import PoolPolicy
from trainmaster.scheduling.planner import plan

NONE: Mapping[str, Reason] = MappingProxyType({})


def reasons_now(pool: PoolPolicy | None, visit: Visit) -> Mapping[str, Reason]:
    """By job name, for those a pass would look at; a job behind those has none here."""
    if pool is None:
        return NONE
    now = visit.outside.clock()
    snapshot = visit.outside.reader.snapshot(pool.name, policy=visit.stored, now=now)
    return plan(snapshot, pool, now=now).reasons
