"""Tells whether a plan can have an action at all, from a few looks at the snapshot."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from trainmaster.core.jobs.instances import Capacity, Shape, total
from trainmaster.core.planning.array_actions import array_actions
from trainmaster.core.planning.capacity import (
    asked_to_stop,
    counted_on,
    free_now,
    on_its_way,
    pool_vector,
    take,
    with_plans,
)
from trainmaster.core.planning.drains import drained
from trainmaster.core.planning.preemption import is_spared, stoppable
from trainmaster.core.planning.preemption_waits import PreemptionWaits
from trainmaster.core.planning.quotas import BORROWER, COVERED, Quotas
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
from trainmaster.core.planning.warm_pools import Upkeep, keys_wanted
from trainmaster.core.policy import PoolPolicy


def may_act(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> bool:
    """Return False only if ``plan`` of the same has no actions; it may still have reasons.

    For callers that need no reasons: most events of a full pool start no job. True promises nothing.
    """
    return (
        bool(snapshot.due or snapshot.budgets)
        or any(array_actions(snapshot.arrays, expands=True))
        or snapshot.blocked
        or (
            bool(pool.stops or pool.reserved or pool.plan_counts)
            and bool(drained(snapshot, pool, now=now).actions)
        )
        or (bool(snapshot.warm_pools) and _one_warm_changes(snapshot, pool, now=now))
        or any(_is_to_be_stopped(job) for job in asked_to_stop(snapshot.running))
        or bool(snapshot.role_starts and snapshot.holds)  # some may be given up
        or any(_changes(hold, snapshot, now=now) for hold in snapshot.holds)
        or _one_fits(snapshot, pool)
        or _one_may_grow(snapshot, pool)
        or _one_may_preempt(snapshot, pool, now=now)
    )


def _is_to_be_stopped(job: RunningJob) -> bool:
    return job.known_to_sagemaker and not job.stop_sent


def _changes(hold: PreemptionReservation, snapshot: Snapshot, *, now: datetime) -> bool:
    """Tell whether the reservation ends, gets its deadline, or takes other victims."""
    if hold.preemptor in snapshot.gone_preemptors or hold.goes_on or hold.victims:
        return True
    if hold.until is not None:
        return hold.until <= now
    return all(job.preempted_for != hold.preemptor for job in asked_to_stop(snapshot.running))


def _one_warm_changes(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> bool:
    """Tell whether a warm pool changes without a start, or may be given up for a reservation."""
    upkeep = Upkeep(
        rules=pool.warm_pool,
        reused=frozenset(),
        released=frozenset(),
        wanted=keys_wanted(snapshot.waiting),
        limited=frozenset(snapshot.account_limits),
        histories=snapshot.warm_histories,
        now=now,
    )
    return bool(snapshot.holds or upkeep.actions(snapshot.warm_pools))


def _one_fits(snapshot: Snapshot, pool: PoolPolicy) -> bool:
    """Tell whether a job fits what is free, with what is held for it.

    A warm pool may be given up beside what is on its way.
    """
    free = free_now(snapshot, pool_vector(pool), snapshot.holds)
    if snapshot.warm_pools:
        warm = (warm_pool.vector for warm_pool in snapshot.warm_pools)
        take(free, total((on_its_way(snapshot.running), counted_on(snapshot.running), *warm)), times=-1)
    if not snapshot.holds and not any(count > 0 for count in free.values()):
        return False  # nearly always, while a queue is long
    held = {hold.preemptor: hold.vector for hold in snapshot.holds}
    if pool.plan_counts:
        waiting = ((job, with_plans(job, job.shapes, pool)) for job in snapshot.waiting)
        return any(_fits(shapes, free, held.get(job.name, {})) for job, shapes in waiting)
    vectors = {job.held for job in snapshot.waiting if len(job.shapes) == 1}  # many ask for the same
    return any(
        all(free.get(capacity, 0) >= count for capacity, count in vector) for vector in vectors
    ) or any(
        _fits(job.shapes, free, held.get(job.name, {}))
        for job in snapshot.waiting
        if len(job.shapes) > 1 or job.name in held
    )


def _one_may_grow(snapshot: Snapshot, pool: PoolPolicy) -> bool:
    """Tell whether there is room for a wider width of an elastic job, worth its restart or not."""
    narrow = [
        (job, job.widths)
        for job in snapshot.running
        if job.widths is not None and sum(job.vector.values()) < job.widths.largest
    ]
    free = free_now(snapshot, pool_vector(pool), snapshot.holds) if narrow else {}
    return any(
        width < count <= width + free.get(capacity, 0)
        for job, widths in narrow
        for capacity, width in job.vector.items()
        for count in widths.counts
    )


def _fits(shapes: Iterable[Shape], free: Mapping[Capacity, int], held: Mapping[Capacity, int]) -> bool:
    return any(
        all(
            free.get(capacity, 0) + held.get(capacity, 0) >= count for capacity, count in shape.vector.items()
        )
        for shape in shapes
    )


def _one_may_preempt(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> bool:
    """Tell whether a job may be stopped for a waiting one that holds nothing, enough of them or not."""
    rules, served = pool.preemption, {hold.preemptor for hold in snapshot.holds}
    may_ask = (job for job in snapshot.waiting if not job.is_refused and job.name not in served)
    waits = PreemptionWaits(snapshot=snapshot, now=now)
    asking = [job for job in may_ask if waits.of(job) is None]
    if not asking or not rules.enabled:
        return False
    outranked = max([job.priority for job in asking]) - rules.min_priority_gap
    below = (job for job in snapshot.running if job.priority <= outranked and not is_spared(job, rules))
    if next(stoppable(below, rules, now=now), None) is not None:
        return True
    return _one_may_reclaim(asking, snapshot, pool)


def _one_may_reclaim(asking: Collection[WaitingJob], snapshot: Snapshot, pool: PoolPolicy) -> bool:
    """Tell whether a job within its quota waits while others borrow.

    A team without a quota counts as covered only if it asks for spot, or for training plans, alone.
    """
    if not pool.quotas:
        return False  # then everybody is covered
    if pool.quotas.keys().isdisjoint([job.team for job in asking]):
        asked_for = {capacity for job in asking for shape in job.shapes for capacity in shape.vector}
        if not any(capacity.is_spot or capacity.is_plan for capacity in asked_for) and not pool.plan_counts:
            return False
    tier = Quotas.of(pool, snapshot.running, snapshot.waiting).tier
    return any(tier(job.name) == COVERED for job in asking) and any(
        tier(job.name) == BORROWER for job in snapshot.running
    )
