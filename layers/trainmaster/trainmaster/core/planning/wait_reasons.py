"""Why a job waits, in words: each with numbers or names that its owner can act on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Vector, vector_text
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.backfill import BackfillReservation
from trainmaster.core.planning.preemption_cost import NotWorth
from trainmaster.core.planning.snapshot import AccountLimit, RunningJob, WaitingJob, WarmPool, known_as

MOST_NAMED = 10
"""Of those that make room; the reason is kept in the job's row."""
PAUSED = Reason(
    code=ReasonCode.PAUSED, message="an admin paused starts and preemptions; 0 jobs start until they resume"
)


def recount(pool: str) -> Reason:
    """What is in use is not known, so nobody knows what is free."""
    message = (
        f"what is in use in pool {pool} cannot be read; no job starts until an admin recounts it: "
        "trainmaster policy pause, then trainmaster repair --apply"
    )
    return Reason(code=ReasonCode.RECOUNT, message=message)


def ahead(job: WaitingJob, reservation: BackfillReservation) -> Reason:
    """Nothing is free that the job ahead does not wait for too."""
    first = known_as(reservation.job, to=job.team)
    wanted = vector_text(reservation.vector)
    return Reason(code=ReasonCode.AHEAD, message=f"{first} is ahead and waits for {wanted}{_by(reservation)}")


def reserved(job: WaitingJob, vector: Vector, reservation: BackfillReservation, *, until: datetime) -> Reason:
    """It would fit now, and hold on to its instances for longer than the job ahead can wait."""
    first = known_as(reservation.job, to=job.team)
    message = (
        f"{vector_text(vector)} would fit now, but may run until {minute_text(until)};"
        f" {first} is ahead and waits for {vector_text(reservation.vector)}{_by(reservation)}"
    )
    return Reason(code=ReasonCode.RESERVATION, message=message)


def short(vector: Vector, free: Mapping[Capacity, int], *, note: str = "") -> Reason:
    have = {capacity: max(free.get(capacity, 0), 0) for capacity in vector}
    message = f"needs {vector_text(vector)}, free {vector_text(have)}{note}"
    return Reason(code=ReasonCode.CAPACITY, message=message)


def too_big(vector: Vector, capacity: Vector) -> Reason:
    have = vector_text({one: capacity.get(one, 0) for one in vector})
    message = f"needs {vector_text(vector)}, the pool has {have} in all"
    return Reason(code=ReasonCode.CAPACITY, message=message)


def making_room(vector: Vector, victims: Iterable[RunningJob], *, to: str) -> Reason:
    names = sorted(known_as(victim, to=to) for victim in victims)
    verb = "are" if len(names) > 1 else "is"
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"and {len(names) - MOST_NAMED} more"]
    message = f"{', '.join(names)} {verb} stopping to make room for {vector_text(vector)}"
    return Reason(code=ReasonCode.CAPACITY, message=message)


def not_worth(vector: Vector, free: Mapping[Capacity, int], refusal: NotWorth, *, to: str) -> Reason:
    """A preemption would help, at a price."""
    names = sorted(known_as(victim, to=to) for victim in refusal.victims)
    who = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    when = "" if refusal.until is None else f" until {minute_text(refusal.until)}"
    note = (
        f"; stopping {who} would lose {_hours(refusal.lost)} of work"
        f" for {_hours(refusal.wait)} of your wait: not worth it{when}"
    )
    return short(vector, free, note=note)


def _hours(span: timedelta) -> str:
    return f"{span / timedelta(hours=1):.1f} h"


def releasing(vector: Vector, pools: Iterable[WarmPool]) -> Reason:
    count = len(tuple(pools))
    message = f"needs {vector_text(vector)}; warm pools being released for it: {count}"
    return Reason(code=ReasonCode.CAPACITY, message=message)


def limited(vector: Vector, capacity: Capacity, limit: AccountLimit) -> Reason:
    message = (
        f"needs {vector_text(vector)}; AWS refused more than {limit.limit} {capacity} recently,"
        " and one job at a time checks whether it still does"
    )
    return Reason(code=ReasonCode.ACCOUNT_LIMIT, message=message)


def refused(vector: Vector, free: Mapping[Capacity, int]) -> Reason:
    """What AWS is known to refuse: what is free goes to others until it does not any more."""
    have = {capacity: max(free.get(capacity, 0), 0) for capacity in vector}
    message = f"needs {vector_text(vector)}, free {vector_text(have)}; nothing is kept free for it"
    return Reason(code=ReasonCode.ACCOUNT_LIMIT, message=message)


def probing(vector: Vector, capacity: Capacity, probe: WaitingJob, *, to: str) -> Reason:
    first = known_as(probe, to=to)
    message = f"needs {vector_text(vector)}; {first} goes first, to see if the account allows more {capacity}"
    return Reason(code=ReasonCode.ACCOUNT_LIMIT, message=message)


def _by(reservation: BackfillReservation) -> str:
    return "" if reservation.at is None else f", expected by {minute_text(reservation.at)} at the latest"


def minute_text(instant: datetime) -> str:
    """The minute of an instant as all reasons write it."""
    day = f"{instant.year:04}-{instant.month:02}-{instant.day:02}"  # a third of what strftime takes
    return f"{day} {instant.hour:02}:{instant.minute:02} UTC"


MAX_POSITION = 1000
"""Positions are counted up to here; behind it only this much is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePosition:
    """Where a job stands in its pool's queue."""

    number: int | None = None
    """1 is next; None when the job does not wait its turn, or too far behind to count."""
    ahead_at_least: int | None = None
    """Only for those too far behind."""
    waiting: int = 0
    """How many jobs the pool has waiting at least, where nobody counted further."""

    @classmethod
    def behind(cls, ahead: int) -> "QueuePosition":
        return cls(number=ahead + 1) if ahead < MAX_POSITION else cls(ahead_at_least=MAX_POSITION)


NO_POSITION = QueuePosition()
NEXT_BUT_ONE = 2


def in_line(position: QueuePosition) -> Reason:
    """For a job that the planner has not looked at: those before it speak for it."""
    if position.ahead_at_least is not None:
        message = f"at least {position.ahead_at_least} jobs are ahead in this pool"
    elif position.number is None:
        message = f"the scheduler is about to consider it; more than {position.waiting} jobs wait in the pool"
    elif position.number == 1:
        message = "no job in the pool is ahead; the scheduler is about to consider it"
    elif position.number == NEXT_BUT_ONE:
        message = "1 job is ahead in this pool"
    else:
        message = f"{position.number - 1} jobs are ahead in this pool"
    return Reason(code=ReasonCode.AHEAD, message=message)


NEXT = Reason(code=ReasonCode.AHEAD, message="no job in the pool is ahead; the next pass starts it")
"""What the planner would start now."""
