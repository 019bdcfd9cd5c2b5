"""Limits of the account, learned from refusals (ResourceLimitExceeded): of a type, and of the refused job.

A refusal does not tell whether the quota of the type is used up or the request asks for something else
that the account does not allow. So it teaches no more than that this sum is refused: jobs that stay below
it start, and above it one job at a time is tried. A second one may be tried at once, as it tells which of
the two it was; the more different jobs were refused, the longer the next one waits. The refused job backs
off alone.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Shape, Vector
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.capacity import least_shapes, minus, within_limits
from trainmaster.core.planning.free_capacity import FreeCapacity
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import WaitingJob, WarmPool

FIRST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(minutes=15)
SOON = timedelta(seconds=30)
RECENT_END = timedelta(minutes=3)
"""Time after an end in which a refusal tells little, as SageMaker gives quota back some time later."""


def limit_after(
    known: AccountLimit | None, *, refused: int, last_end: datetime | None, at: datetime, seed: str
) -> AccountLimit:
    """Return what is known of a type once a job was refused that never was before.

    Args:
        known: Limit learned from jobs that were refused before it.
        refused: Instances in all: in use and warm, and those it asked for.
        last_end: When instances of the type last came free.
        at: Instant of the refusal.
        seed: Draws the jitter, so that it can be repeated.
    """
    limit = max(refused - 1, 0)
    is_lower = known is None or limit < known.limit
    refusals = known.refusals if known else 0
    lowest = limit if known is None else min(limit, known.limit)
    # The quota may just be on its way back, so this refusal does not lengthen the wait of the next one.
    if is_lower and last_end is not None and at - last_end < RECENT_END:
        return AccountLimit(limit=lowest, until=at + SOON, refusals=refusals)
    wait = _limit_wait(refusals) * _jitter(f"{seed}:{refusals}")
    return AccountLimit(limit=lowest, until=at + wait, refusals=refusals + 1)


def _limit_wait(refusals: int) -> timedelta:
    """Return the wait: none, half a minute, then doubling: 1, 2, 4 ... 15 minutes."""
    if refusals == 0:
        return timedelta()
    return _doubled(SOON, refusals - 1)


def refused_again(
    known: AccountRefusals | None, *, held: Vector, soon: bool, at: datetime, seed: str
) -> AccountRefusals:
    """Return what a job knows once it was refused (again).

    Args:
        known: Earlier refusals in a row.
        held: Instances of its types that the pool held.
        soon: Whether instances of them came free a moment ago, so that the quota may be given back any time.
        at: Instant of the refusal.
        seed: As for ``limit_after``.
    """
    count = known.count if known else 0
    wait = _doubled(FIRST_WAIT, count) * _jitter(f"{seed}:{count}")
    before = known.held if known and known.held else {}
    return AccountRefusals(
        count=count + 1,
        held={capacity: min(n, before.get(capacity, n)) for capacity, n in held.items()},
        again_at=at + (SOON if soon and count == 0 else wait),
    )


def is_due(job: WaitingJob, *, held: Vector, limits: Mapping[Capacity, AccountLimit], now: datetime) -> bool:
    """Tell whether its back-off is over, or less is held than when the account refused it.

    Args:
        job: A job in a back-off.
        held: Instances that the pool holds, used or warm.
        limits: Learned limits of the account.
        now: Instant of the pass.
    """
    if job.not_before is None:
        return False
    if job.not_before <= now:
        return True
    then = job.refused.held if job.refused else None
    if not then or not any(held.get(capacity, 0) < count for capacity, count in then.items()):
        return False
    least = job.vector if job.widths is None else least_shapes(job, job.shapes)[0].vector
    needed = ((capacity, held.get(capacity, 0) + count) for capacity, count in least.items())
    return all(capacity not in limits or count <= limits[capacity].limit for capacity, count in needed)


def limited(job: WaitingJob, shape: Shape, capacity: FreeCapacity) -> Reason | None:
    """Return why a start must wait for a learned limit, above which one at a time is tried when due.

    Args:
        job: A waiting job.
        shape: The shape that it would start in.
        capacity: Free capacity of the plan so far.
    """
    if not capacity.allowed:  # nearly always: spare the look for a warm pool
        return None
    now, warm = capacity.now, capacity.warm_pool_for(shape)
    if (kept := _kept_for_others(job, shape, warm, capacity)) is not None:
        return wait_reasons.limited(shape.vector, kept, capacity.snapshot.account_limits[kept])
    is_last = job.widths is None or shape.instances == job.widths.least
    if is_last and job.refused is not None and (job.refused.again_at is None or job.refused.again_at <= now):
        return None  # it asks for itself alone, in its own time
    keeps_less = job.widths is not None and job.name in capacity.holds and not capacity.is_held(job, shape)
    for kind in capacity.above_limit(shape.vector, warm):
        limit = capacity.snapshot.account_limits[kind]
        if limit.until > now or job.refused is not None or keeps_less:
            return wait_reasons.limited(shape.vector, kind, limit)
        if kind in capacity.probes:
            return wait_reasons.probing(shape.vector, kind, capacity.probes[kind], to=job.team)
    return None


def _kept_for_others(
    job: WaitingJob, shape: Shape, warm: WarmPool | None, capacity: FreeCapacity
) -> Capacity | None:
    """Return a type of which what the limit leaves is kept for jobs that others were stopped for."""
    if not capacity.holds or job.name in capacity.holds:
        return None
    room = within_limits(capacity.free.of(job.team), capacity.capacity, capacity.snapshot.account_limits)
    wanted = minus(shape.vector, warm.vector) if warm else shape.vector
    kept = (
        kind for kind, count in wanted.items() if room.get(kind, 0) < count <= capacity.allowed.get(kind, 0)
    )
    return next(kept, None)


def is_limited(shape: Shape, why: Reason | None, capacity: FreeCapacity) -> bool:
    """Tell whether a start is refused for a limit alone, so that stops of other jobs bring it below that.

    Args:
        shape: The shape of the start.
        why: Reason why it may not start; None: it may, by all but capacity.
        capacity: Free capacity of the plan so far.
    """
    if why is not None and why.code is ReasonCode.ACCOUNT_LIMIT:
        limits = capacity.snapshot.account_limits
        return all(limits[kind].is_sure for kind in capacity.above_limit(shape.vector, None))
    return why is not None and why.code is ReasonCode.QUOTA


def _doubled(first: timedelta, times: int) -> timedelta:
    doubled: timedelta = first * 2 ** min(times, 10)
    return min(LONGEST_WAIT, doubled)


def _jitter(seed: str) -> float:
    """Draw a factor between a half and one."""
    digest = hashlib.blake2b(seed.encode(), digest_size=7).digest()
    # Seven bytes are 56 bits, so dividing by 2**57 gives 0 to 0.5.
    return 0.5 + int.from_bytes(digest, "big") / 2**57
