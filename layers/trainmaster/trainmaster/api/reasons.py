"""Why jobs wait, as the planner says it at this instant: what a pass wrote may be older than the queue."""

from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.request_context import Visit
from trainmaster.api.views import Place, ahead
from trainmaster.core.jobs.model import Job, Reason
from trainmaster.core.planning.actions import Plan, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.planning.wait_reasons import PAUSED
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.unmanaged.stray_pool import rules_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A pool as a pass would read it at this instant, and what it would decide."""

    pool: PoolPolicy
    snapshot: Snapshot
    decided: Plan
    at: datetime


def look_at(pool: PoolPolicy | None, visit: Visit) -> Look | None:
    """None: there is no such pool."""
    if pool is None:
        return None
    now = visit.outside.clock()
    snapshot = snapshot_of(pool, visit, now=now)
    rules = rules_for(pool, snapshot)
    return Look(pool=rules, snapshot=snapshot, decided=plan(snapshot, rules, now=now), at=now)


def snapshot_of(pool: PoolPolicy, visit: Visit, *, now: datetime) -> Snapshot:
    """The pool as a pass would read it now."""
    reader = visit.outside.reader
    return reader.snapshot(pool, policy=visit.policy, paused=visit.stored.paused, now=now)


def reason_now(job: Job, place: Place, look: Look | None, *, paused: bool) -> Reason | None:
    """Why a job waits its turn; None for one that does not, or that waits for an instant or a person."""
    if not job.is_waiting or job.is_parked:
        return None
    if paused:
        return PAUSED
    if look is None:
        return ahead(place)
    if any(isinstance(action, Start) and action.job.name == job.name for action in look.decided.actions):
        return Reason(code="ahead", message="no job of the pool is ahead; the next pass starts it")
    return look.decided.reasons.get(job.name) or ahead(place)
