"""One look at a pool: what to do now, and why every other job waits. The only place that decides."""

from datetime import datetime, timedelta

from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.actions import Action, EndReservation, LimitReservation, Plan, Stop, Unpark
from trainmaster.core.planning.budgets import warnings
from trainmaster.core.planning.capacity import ASKED_TO_STOP
from trainmaster.core.planning.queue_walk import QueueWalk
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot
from trainmaster.core.planning.warm_pools import Upkeep, keys_wanted
from trainmaster.core.policy import PoolPolicy

HOLD_LIFE = timedelta(minutes=15)
"""A preemptor that has not started this long after its last victim ended loses its capacity."""


def plan(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> Plan:
    """Decide about every candidate exactly once.

    In turn by ``(tier, score, name)``. What fits starts. The first job that does not gets a reservation, and
    those behind it start only if they cannot delay it; or it preempts, and what comes free is kept for it.
    A job that would not fit into an empty pool (capacity was lowered) stands in nobody's way.

    Args:
        snapshot: The pool as read at the start of the pass.
        pool: Its section of the policy.
        now: The instant of the pass, UTC; the planner never looks at a clock.

    Returns:
        Actions in the order they must be carried out, and a reason for each candidate that does not start.
    """
    first: list[Action] = [Stop(job=job) for job in snapshot.running if _must_be_told(job)]
    first += [Unpark(job=job) for job in snapshot.due]
    first += warnings(snapshot)
    holds, upkeep = _upkeep(snapshot, now=now)
    walk = QueueWalk.of(snapshot, pool, holds=holds, now=now)
    if snapshot.blocked:
        reason = wait_reasons.PAUSED if snapshot.paused else snapshot.recount
        waits = {job.name: reason for job in snapshot.waiting if reason is not None}
        return Plan(actions=(*first, *upkeep, *_warm(snapshot, pool, walk, now=now)), reasons=waits)
    for job in walk.order():
        walk.consider(job)
    warm = _warm(snapshot, pool, walk, now=now)
    return Plan(actions=(*first, *upkeep, *walk.actions, *warm), reasons=walk.reasons)


def _must_be_told(job: RunningJob) -> bool:
    return job.state in ASKED_TO_STOP and job.known_to_sagemaker and not job.stop_sent


def _upkeep(snapshot: Snapshot, *, now: datetime) -> tuple[tuple[PreemptionReservation, ...], list[Action]]:
    """Reservations that live on, and what is to be done about the others."""
    live: list[PreemptionReservation] = []
    actions: list[Action] = []
    if not snapshot.holds:
        return (), []
    stopping = {job.name for job in snapshot.running if job.state in ASKED_TO_STOP}
    for hold in snapshot.holds:
        if hold.preemptor in snapshot.gone_preemptors or (hold.until is not None and hold.until <= now):
            actions.append(EndReservation(hold=hold))
            continue
        if hold.until is None and not stopping & set(hold.victims):
            actions.append(LimitReservation(hold=hold, until=now + HOLD_LIFE))
        live.append(hold)
    return tuple(live), actions


def _warm(snapshot: Snapshot, pool: PoolPolicy, walk: QueueWalk, *, now: datetime) -> list[Action]:
    """What becomes of each warm pool, once it is clear who starts where."""
    if not snapshot.warm_pools:
        return []
    waits = [job for job in (*snapshot.waiting, *snapshot.due) if job.name not in walk.started]
    upkeep = Upkeep(
        rules=pool.warm_pool,
        reused=frozenset(walk.capacity.reused),
        released=frozenset(walk.capacity.released),
        wanted=keys_wanted(waits),
        now=now,
    )
    return upkeep.actions(snapshot.warm_pools)
