"""How long a pool in which a plan would do nothing stays like that, if nothing but the clock changes.

``may_act`` of the same snapshot stays False until then. Each of its rules that depends on the instant has to
say here when it may come out otherwise, exactly or too early; a rule that cannot say so makes no promise.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from trainmaster.core.planning.preemption import is_spared, stoppable
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy

NEVER = datetime.max.replace(tzinfo=UTC)


def idle_until(
    snapshot: Snapshot, pool: PoolPolicy, parked: Iterable[WaitingJob], *, now: datetime
) -> datetime:
    """Return the first instant at which a plan may do something; ``now`` if that is not known.

    Args:
        snapshot: A pool in which a plan does nothing now.
        pool: Its section of the policy.
        parked: Jobs that wait for an instant.
        now: The instant of the snapshot.
    """
    if _moves_with_time(snapshot, pool):
        return now
    outranked = _outranked(snapshot, pool)
    if any(stoppable(outranked, pool.preemption, now=now)):
        return now  # whether a stop is worth its price depends on every instant
    instants = (*_back_offs(parked), *_holds(snapshot), *_futile(snapshot), *_protected(outranked, pool))
    return min((instant for instant in instants if instant > now), default=NEVER)


def _moves_with_time(snapshot: Snapshot, pool: PoolPolicy) -> bool:
    """Tell whether something changes all the time: warm pools age, months end, shares are forgotten."""
    return bool(
        snapshot.warm_pools
        or snapshot.budgets
        or snapshot.due
        or snapshot.blocked
        or snapshot.role_starts
        or pool.order.fair_share.weight
    )


def _outranked(snapshot: Snapshot, pool: PoolPolicy) -> list[RunningJob]:
    """Return the running jobs that are of too low a priority to be safe from all that wait."""
    rules, served = pool.preemption, {hold.preemptor for hold in snapshot.holds}
    priorities = [job.priority for job in snapshot.waiting if not job.is_refused and job.name not in served]
    if not priorities or not rules.enabled:
        return []
    highest = max(priorities) - rules.min_priority_gap
    return [job for job in snapshot.running if job.priority <= highest and not is_spared(job, rules)]


def _back_offs(parked: Iterable[WaitingJob]) -> Iterator[datetime]:
    return (job.not_before for job in parked if job.not_before is not None)


def _holds(snapshot: Snapshot) -> Iterator[datetime]:
    return (hold.until for hold in snapshot.holds if hold.until is not None)


def _futile(snapshot: Snapshot) -> Iterator[datetime]:
    """Yield the ends of waits of jobs whose preemptions did not help."""
    return (job.futile.until for job in snapshot.waiting if job.futile is not None)


def _protected(running: Iterable[RunningJob], pool: PoolPolicy) -> Iterator[datetime]:
    """Yield the ends of ``min_runtime``, until which an attempt in training is not stopped."""
    rules = pool.preemption
    for job in running:
        if job.training_since is not None:
            yield job.training_since + rules.min_runtime
