"""Reasons why a job waits, in words: each with numbers or names that its owner can act on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.instances import Capacity, Vector, vector_text
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.backfill import BackfillReservation
from trainmaster.core.planning.preemption_worth import NotWorth, full_minute_after
from trainmaster.core.planning.refusal_records import AccountLimit, RoleStarts
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob, WarmPool, known_as

MOST_NAMED = 10
"""Most victims that a reason names, as it is kept in the job's row."""
PAUSED = Reason(
    code=ReasonCode.PAUSED, message="an admin paused starts and preemptions; 0 jobs start until they resume"
)


def recount(pool: str) -> Reason:
    """Say that the instances in use are unknown, so that it is unknown what is free."""
    message = (
        f"what is in use in pool {pool} cannot be read; no job starts until an admin recounts it: "
        "trainmaster policy pause, then trainmaster repair --apply"
    )
    return Reason(code=ReasonCode.RECOUNT, message=message)


def ahead(job: WaitingJob, reservation: BackfillReservation) -> Reason:
    """Say that nothing is free that the job ahead does not wait for, too."""
    first = known_as(reservation.job, to=job.team)
    wanted = vector_text(reservation.vector)
    return Reason(code=ReasonCode.AHEAD, message=f"{first} is ahead and waits for {wanted}{_by(reservation)}")


def reserved(job: WaitingJob, vector: Vector, reservation: BackfillReservation, *, until: datetime) -> Reason:
    """Say that it would fit now, but hold on to its instances for longer than the job ahead can wait."""
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


MAKE_ROOM = "; the jobs that make room for it are stopping"
"""Note of a job that gets what others leave who are asked to stop."""


def coming(vector: Vector, free: Mapping[Capacity, int], *, stop: bool, taken_over: bool) -> Reason:
    """Say that what it lacks is on its way without another stop.

    Args:
        vector: What the job needs.
        free: What is free now.
        stop: Whether jobs on such instances are stopping.
        taken_over: Whether a start counts a warm pool beside its own instances until it trains.
    """
    if stop:
        return short(vector, free, note=MAKE_ROOM)
    if taken_over:
        note = "a warm instance is being taken over, and counts twice until that job trains"
    else:
        note = "warm pools are being given up"
    return short(vector, free, note=f"; {note}")


def too_big(vector: Vector, capacity: Vector) -> Reason:
    have = vector_text({kind: capacity.get(kind, 0) for kind in vector})
    message = f"needs {vector_text(vector)}, the pool has {have} in all"
    return Reason(code=ReasonCode.CAPACITY, message=message)


def past_lowering(vector: Vector, *, until: datetime, lowered_at: datetime, there: int) -> Reason:
    """Say that it would fit now, but may hold on to its instances beyond a lowering of the calendar."""
    (capacity,) = vector
    message = (
        f"needs {vector_text(vector)} and may run until {minute_text(until)}; from {minute_text(lowered_at)}"
        f" on the calendar leaves {there} {capacity}: before that it starts only with checkpoints or a"
        " shorter MaxRuntimeInSeconds"
    )
    return Reason(code=ReasonCode.WINDOW, message=message)


def lower_until(vector: Vector, capacity: Vector, *, until: datetime) -> Reason:
    """Say that the calendar leaves too few instances, and until when."""
    have = vector_text({kind: capacity.get(kind, 0) for kind in vector})
    message = f"needs {vector_text(vector)}, the calendar leaves {have} until {minute_text(until)}"
    return Reason(code=ReasonCode.WINDOW, message=message)


def no_window(vector: Vector, *, opens: datetime | None) -> Reason:
    """Say that a training plan has too few instances now, and when it has more."""
    (plan,) = vector
    when = "none is known to come" if opens is None else f"the next begins at {minute_text(opens)}"
    which = f"training plan {plan.plan}" if plan.plan else "a training plan"
    message = f"needs {vector_text(vector)} of {which}, which is not open for so many; {when}"
    return Reason(code=ReasonCode.WINDOW, message=message)


def past_window(vector: Vector, *, until: datetime, closes: datetime) -> Reason:
    """Say that it would fit on a training plan now, but may run beyond the closing of its window."""
    (plan,) = vector
    message = (
        f"needs {vector_text(vector)} and may run until {minute_text(until)}, but training plan {plan.plan}"
        f" closes at {minute_text(closes)}: before that it starts there only with checkpoints and time to use"
        " them, or with a shorter MaxRuntimeInSeconds"
    )
    return Reason(code=ReasonCode.WINDOW, message=message)


def closed_text(plan: Capacity, *, ends: datetime | None, left: int) -> str:
    """Say why a job on a training plan is stopped; ``ends`` None: not because its window closes."""
    if ends is None:
        return f"training plan {plan.plan} has {left} instances left"
    return f"training plan {plan.plan} closes: SageMaker ends its instances from {minute_text(ends)} on"


def lowered_text(there: Vector) -> str:
    """Say why a running job is stopped for the calendar."""
    return f"the calendar lowered the pool to {vector_text(there)}"


def making_room(vector: Vector, victims: Iterable[RunningJob], *, to: str) -> Reason:
    names = sorted(known_as(victim, to=to) for victim in victims)
    verb = "are" if len(names) > 1 else "is"
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"and {len(names) - MOST_NAMED} more"]
    message = f"{', '.join(names)} {verb} stopping to make room for {vector_text(vector)}"
    return Reason(code=ReasonCode.CAPACITY, message=message)


def not_worth(vector: Vector, free: Mapping[Capacity, int], refusal: NotWorth, *, to: str) -> Reason:
    """Say that a preemption would help, but costs more than it spares."""
    names = sorted(known_as(victim, to=to) for victim in refusal.victims)
    who = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    when = "" if refusal.until is None else f" until {minute_text(refusal.until)}"
    start = " and a start that has trained for less than 5 minutes" if refusal.wastes_a_start else ""
    again = ", once more within a day," if refusal.is_repeated else ""
    note = (
        f"; stopping {who} would lose {_hours(refusal.lost)} of work{start}{again}"
        f" for {_hours(refusal.wait)} of your wait: not worth it{when}"
    )
    return short(vector, free, note=note)


def with_wait(why: Reason, futile: FutilePreemptions) -> Reason:
    """Say that a preemption would help if AWS served the job, which it did not at the last ones."""
    return replace(why, message=f"{why.message}; {stops_nobody(futile)}")


def stops_nobody(futile: FutilePreemptions) -> str:
    """Say how long a job whose preemptions did not help has to wait."""
    times = "the last time" if futile.count == 1 else f"the last {futile.count} times"
    wanted = vector_text(futile.vector)
    return (
        f"{times} that jobs were stopped for it, it did not get to train: it stops no job until"
        f" {_minute_after(futile.until)}, or until AWS serves {wanted} to some job;"
        " it starts at once where enough is free"
    )


def _minute_after(instant: datetime) -> str:
    """Render the first full minute at which it is over."""
    return minute_text(full_minute_after(instant))


def _hours(span: timedelta) -> str:
    return f"{span / timedelta(hours=1):.1f} h"


def releasing(vector: Vector, pools: Iterable[WarmPool]) -> Reason:
    count = len(tuple(pools))
    message = f"needs {vector_text(vector)}; warm pools being released for it: {count}"
    return Reason(code=ReasonCode.CAPACITY, message=message)


def limited(vector: Vector, capacity: Capacity, limit: AccountLimit) -> Reason:
    message = (
        f"needs {vector_text(vector)}; AWS refused more than {limit.limit} {capacity} recently,"
        " and one job at a time checks whether it still does,"
        f" the next one at {_minute_after(limit.until)} or later"
    )
    return Reason(code=ReasonCode.ACCOUNT_LIMIT, message=message)


def refused(job: WaitingJob, vector: Vector, free: Mapping[Capacity, int]) -> Reason:
    """Say what a job needs that AWS refused: what is free goes to others until AWS accepts a start of it."""
    have = {capacity: max(free.get(capacity, 0), 0) for capacity in vector}
    message = f"needs {vector_text(vector)}, free {vector_text(have)}; nothing is kept free for it"
    code = ReasonCode.ACCOUNT_LIMIT if job.turned_down is None else ReasonCode.REFUSED
    return Reason(code=code, message=message)


def starts_paused(role: RoleStarts, pool: str, *, to: str) -> Reason:
    """Say since when and with which words AWS refuses all starts with the job's role.

    The reason is kept in the job's row for as long as its code holds, so it names an instant that stays true.
    """
    pause = role.pause
    assert pause is not None, role
    message = (
        f"{_paused(role, pool, to=to)}; one job at a time tries again, the next one at"
        f" {minute_text(pause.next_probe_at)} or later"
    )
    return Reason(code=ReasonCode.REFUSED, message=message)


def trying(role: RoleStarts, pool: str, probe: WaitingJob, *, to: str) -> Reason:
    """Say which job finds out whether AWS accepts starts with the role again."""
    message = f"{_paused(role, pool, to=to)}; {known_as(probe, to=to)} tries again now, the others follow it"
    return Reason(code=ReasonCode.REFUSED, message=message)


def _paused(role: RoleStarts, pool: str, *, to: str) -> str:
    pause = role.pause
    assert pause is not None, role
    sender = "" if role.launcher is None else f" sent by {role.launcher}"
    since = minute_text(pause.since)
    return (
        f"starts with role {role.role_arn}{sender} in pool {pool} are paused since {since}:"
        f" AWS refused different jobs in a row: {pause.words(to=to)}"
    )


def probing(vector: Vector, capacity: Capacity, probe: WaitingJob, *, to: str) -> Reason:
    first = known_as(probe, to=to)
    message = f"needs {vector_text(vector)}; {first} goes first, to see if the account allows more {capacity}"
    return Reason(code=ReasonCode.ACCOUNT_LIMIT, message=message)


def _by(reservation: BackfillReservation) -> str:
    return "" if reservation.at is None else f", expected by {minute_text(reservation.at)} at the latest"


def minute_text(instant: datetime) -> str:
    """Render the minute of an instant as all reasons write it."""
    day = f"{instant.year:04}-{instant.month:02}-{instant.day:02}"  # a third of what strftime takes
    return f"{day} {instant.hour:02}:{instant.minute:02} UTC"


MAX_POSITION = 1000
"""Highest position that is counted; behind it only this much is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePosition:
    """Position of a job in its pool's queue."""

    number: int | None = None
    """Position, 1 is next; None when the job does not wait its turn, or is too far behind to count."""
    ahead_at_least: int | None = None
    """Least number of jobs ahead; only for those too far behind."""
    waiting: int = 0
    """Least number of jobs that the pool has waiting, if they were not counted further."""

    @classmethod
    def behind(cls, ahead: int) -> "QueuePosition":
        return cls(number=ahead + 1) if ahead < MAX_POSITION else cls(ahead_at_least=MAX_POSITION)


NO_POSITION = QueuePosition()
NEXT_BUT_ONE = 2


def in_line(position: QueuePosition) -> Reason:
    """Say how many jobs speak for one that the planner has not looked at."""
    if position.number == 1:
        return FIRST
    if position.ahead_at_least is not None:
        message = f"at least {position.ahead_at_least} jobs are ahead in this pool"
    elif position.number is not None:
        message = f"{position.number - 1} jobs are ahead in this pool"
        message = message if position.number > NEXT_BUT_ONE else "1 job is ahead in this pool"
    elif position.waiting:
        message = f"at least {position.waiting} jobs are ahead in this pool"
    else:
        message = f"the next pass looks at it, {SOON}"
    return Reason(code=ReasonCode.AHEAD, message=message)


SOON = "within a minute"
"""When a pool has its next pass: it is woken by changes, and by the clock each minute."""
FIRST = Reason(code=ReasonCode.AHEAD, message=f"it is first in line; the next pass decides about it, {SOON}")
"""No job is ahead, and the planner was not asked."""
NEXT = Reason(code=ReasonCode.AHEAD, message=f"it starts with the next pass, {SOON}")
"""The planner would start the job now."""
