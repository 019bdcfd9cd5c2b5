"""Why jobs wait, as the planner says it at this instant: what a pass wrote may be older than the queue."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from trainmaster.api.visit import Visit
from trainmaster.jobs import Reason
from trainmaster.policy import PoolPolicy
from trainmaster.scheduling.planner import plan
from trainmaster.scheduling.snapshot import Snapshot

NONE: Mapping[str, Reason] = MappingProxyType({})


def snapshot_of(pool: PoolPolicy, visit: Visit, *, now: datetime) -> Snapshot:
    """The pool as a pass would read it now."""
    reader = visit.outside.reader
    return reader.snapshot(pool, policy=visit.policy, paused=visit.stored.paused, now=now)


def reasons_now(pool: PoolPolicy | None, visit: Visit) -> Mapping[str, Reason]:
    """By job name, for those a pass would look at; a job behind those has none here."""
    if pool is None:
        return NONE
    now = visit.outside.clock()
    snapshot = snapshot_of(pool, visit, now=now)
    return plan(snapshot, pool, now=now).reasons
