"""Plan a pool once: what to do now, and why every other job waits. The only place that decides."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.costs.ledger import MonthAccount
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.actions import (
    Action,
    EndReservation,
    LimitReservation,
    Plan,
    Preempt,
    Start,
    Stop,
    Unpark,
)
from trainmaster.core.planning.array_actions import array_actions
from trainmaster.core.planning.budgets import warnings
from trainmaster.core.planning.capacity import ASKED_TO_STOP
from trainmaster.core.planning.drains import Drained, drained
from trainmaster.core.planning.fair_share import ranked
from trainmaster.core.planning.growth import growths
from trainmaster.core.planning.plan_reasons import PlanReasons
from trainmaster.core.planning.queue_walk import QueueWalk
from trainmaster.core.planning.reservations import Preemptions
from trainmaster.core.planning.snapshot import PreemptionReservation, Snapshot, WaitingJob
from trainmaster.core.planning.start_pauses import StartPauses, kept_for_paused
from trainmaster.core.planning.warm_pools import Upkeep, keys_wanted
from trainmaster.core.policy import PoolPolicy

HOLD_LIFE = timedelta(minutes=15)
"""Time after its last victim's end in which a preemptor must start, or it loses its capacity."""


def plan(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> Plan:
    """Decide about every candidate exactly once.

    They come by ``(tier, score, name)``, the score moved by past use of the team (``fair_share``). A job that
    fits starts. The first job that does not gets a reservation, and those behind it start only if they cannot
    delay it; or it preempts, and what comes free is kept for it.
    A job that would not fit into an empty pool (capacity was lowered) delays no other.

    Args:
        snapshot: The pool as read at the start of the pass.
        pool: Its section of the policy.
        now: The instant of the pass, UTC; the planner never looks at a clock.

    Returns:
        Actions in the order they must be carried out, and a reason for each candidate that does not start.
    """
    takes = bool(pool.stops or pool.reserved or pool.plan_counts)
    draining = drained(snapshot, pool, now=now) if takes else Drained(actions=(), snapshot=snapshot)
    snapshot = ranked(draining.snapshot, pool, now=now)
    stopping = (job for job in snapshot.running if job.state in ASKED_TO_STOP)
    first: list[Action] = [Stop(job=job) for job in stopping if job.known_to_sagemaker and not job.stop_sent]
    first += draining.actions
    first += [Unpark(job=job) for job in snapshot.due]
    first += warnings(snapshot)
    first += array_actions(snapshot.arrays, expands=not snapshot.blocked)
    pauses = StartPauses(snapshot=snapshot, pool=pool.name, now=now)
    over = ended(snapshot, now=now, given_up=kept_for_paused(snapshot, pauses) if snapshot.holds else ())
    gone = {ending.hold.preemptor for ending in over}
    holds = tuple(hold for hold in snapshot.holds if hold.preemptor not in gone)
    walk = QueueWalk.of(snapshot, pool, holds=holds, now=now)
    # Nothing starts, but stops, deadlines of holds and warm pools must go on: instances are billed meanwhile.
    if snapshot.blocked:
        reason = wait_reasons.PAUSED if snapshot.paused else snapshot.recount
        waits = {job.name: reason for job in snapshot.waiting if reason is not None}
        upkeep: list[Action] = [*over, *limited(holds, walk.preemptions, now=now)]
        return Plan(actions=(*first, *upkeep, *_warm(snapshot, pool, walk, now=now)), reasons=waits)
    for job in walk.quotas.in_turn(snapshot.waiting):
        walk.consider(job)
    # Jobs that were deferred for less refused ones of their role get their chance only now.
    for job in walk.pauses.last_round():
        walk.consider(job)
    _spare_superfluous(walk)
    growth, widths = growths(walk)
    walk.actions += growth
    gone_on = {action.job.name for action in walk.actions if isinstance(action, Preempt) and action.goes_on}
    waited_for = (hold for hold in holds if hold.preemptor not in gone_on)
    upkeep = [*over, *limited(waited_for, walk.preemptions, now=now)]
    warm = _warm(snapshot, pool, walk, now=now)
    actions = (*first, *upkeep, *walk.actions, *warm)
    return Plan(actions=actions, reasons=PlanReasons(walk.reasons), widths=widths)


def _spare_superfluous(walk: QueueWalk) -> None:
    """Drop the stops that are not needed, now that all preemptors of the plan are known."""
    before = {action.job.name: action for action in walk.actions if isinstance(action, Preempt)}
    if len(before) < 2:  # noqa: PLR2004  one alone has chosen a least set
        return
    walk.actions = walk.preemptions.least_stops(walk.actions, spare=walk.capacity.soon_within_limits(None))
    left = {action.job.name: action for action in walk.actions if isinstance(action, Preempt)}
    for name, action in before.items():
        team, vector = action.job.team, action.shape.vector
        if name not in left:
            free = walk.capacity.free.of(team)
            walk.reasons[name] = wait_reasons.short(vector, free, note=wait_reasons.MAKE_ROOM)
        elif left[name] is not action:
            walk.reasons[name] = wait_reasons.making_room(vector, left[name].victims, to=team)


def _warm(snapshot: Snapshot, pool: PoolPolicy, walk: QueueWalk, *, now: datetime) -> list[Action]:
    """Decide about each warm pool, once it is clear which jobs start in which."""
    if not snapshot.warm_pools:
        return []
    waits = [job for job in (*snapshot.waiting, *snapshot.due) if job.name not in walk.started]
    upkeep = Upkeep(
        rules=pool.warm_pool,
        reused=frozenset(walk.capacity.reused),
        released=frozenset(walk.capacity.released),
        wanted=keys_wanted(waits),
        limited=frozenset(snapshot.account_limits),
        histories=snapshot.warm_histories,
        now=now,
    )
    return upkeep.actions(snapshot.warm_pools)


def ended(
    snapshot: Snapshot, *, now: datetime, given_up: Collection[PreemptionReservation] = ()
) -> list[EndReservation]:
    """Return the ends of reservations whose preemptor is gone or did not start in time.

    Args:
        snapshot: The pool as read.
        now: Instant of the pass.
        given_up: Further reservations that end.
    """
    # An elastic job that is stopped for another width is not waiting yet, and its room is kept.
    coming_back = _coming_back(snapshot) if snapshot.gone_preemptors else frozenset[str]()
    return [
        EndReservation(hold=hold)
        for hold in snapshot.holds
        if (hold.preemptor in snapshot.gone_preemptors and hold.preemptor not in coming_back)
        or (hold.until is not None and hold.until <= now)
        or hold in given_up
    ]


def _coming_back(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(job.name for job in snapshot.running if job.state is JobState.PREEMPTING)


def limited(
    holds: Iterable[PreemptionReservation], preemptions: Preemptions, *, now: datetime
) -> list[LimitReservation]:
    """Return deadlines for the reservations whose victims have all ended: the preemptor must start by then.

    Args:
        holds: Reservations for which this plan stops no further job.
        preemptions: Preemptions of the plan, which know the jobs that are stopping.
        now: Instant of the pass.
    """
    return [
        LimitReservation(hold=hold, until=now + HOLD_LIFE)
        for hold in holds
        if hold.until is None and not preemptions.stopping_for(hold)
    ]


def starts_in_empty_pool(job: WaitingJob, snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> bool:
    """Tell whether a job starts in an empty pool at the beginning of a month; else it never does.

    Args:
        job: A job that waits.
        snapshot: The pool as it is; only prices and budgets are taken from it.
        pool: Its section of the policy.
        now: Any instant.
    """
    budgets = {
        team: replace(budget, account=MonthAccount(), warned=True)
        for team, budget in snapshot.budgets.items()
    }
    waits = replace(job, refused=None, not_before=None)
    roomy = replace(
        pool,
        capacity=pool.most_capacity,
        ahead=(),
        stops=frozenset(),
        reserved={},
        plan_counts=pool.plans_unlimited,
        plans_ahead=(),
    )
    empty = Snapshot(
        waiting=(waits,), budgets=budgets, prices=snapshot.prices, spot_max_wait=snapshot.spot_max_wait
    )
    actions = plan(empty, roomy, now=now).actions
    return any(isinstance(action, Start) for action in actions)
