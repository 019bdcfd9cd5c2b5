"""Why jobs wait, as the planner says it at this instant: what a pass wrote may be older than the queue."""

from datetime import datetime

from trainmaster.api.visit import Visit
from trainmaster.jobs import Job, Reason
from trainmaster.policy import PoolPolicy
from trainmaster.scheduling.actions import Plan, Start
from trainmaster.scheduling.planner import plan
from trainmaster.scheduling.reasons import PAUSED
from trainmaster.scheduling.snapshot import Snapshot
from trainmaster.views import Place, ahead

NOTHING = Plan(actions=(), reasons={})


def snapshot_of(pool: PoolPolicy, visit: Visit, *, now: datetime) -> Snapshot:
    """The pool as a pass would read it now."""
    reader = visit.outside.reader
    return reader.snapshot(pool, policy=visit.policy, paused=visit.stored.paused, now=now)


def decided_now(pool: PoolPolicy | None, visit: Visit) -> Plan:
    """What a pass would do now, and why each job that it would look at waits."""
    if pool is None:
        return NOTHING
    now = visit.outside.clock()
    return plan(snapshot_of(pool, visit, now=now), pool, now=now)


def reason_now(job: Job, place: Place, decided: Plan, *, paused: bool) -> Reason | None:
    """Why a job waits its turn; None for one that does not, or that waits for an instant or a person."""
    if not job.is_waiting or job.is_parked:
        return None
    if paused:
        return PAUSED
    if any(isinstance(action, Start) and action.job.name == job.name for action in decided.actions):
        return Reason(code="ahead", message="jobs of the pool that are ahead: 0; the next pass starts it")
    return decided.reasons.get(job.name) or ahead(place)
