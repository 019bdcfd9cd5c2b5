"""What attempts and warm pools cost a team, and how spot instances fared; written with a change."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainmaster.core.costs.ledger import PreemptionEntry, month_of
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.jobs.attempts import Attempt, Preemptor
from trainmaster.core.jobs.instances import CapacityType
from trainmaster.core.jobs.model import JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.snapshot import WarmPool

from tests.memory.tables import Month, Tables, Usage


def charge(tables: Tables, change: Change, *, at: datetime) -> None:
    """Reservations and bills, in the month of the claim."""
    for live, sign in ((change.before.live, -1), (change.after.live, +1)):
        if live is not None and live.claim.month is not None and live.claim.reserved_cents:
            _month(tables, change, live.claim.month).committed += sign * live.claim.reserved_cents
    ended = change.ended
    if ended is None or ended.claim.month is None:
        return
    month = _month(tables, change, ended.claim.month)
    month.committed += ended.bill.cents or 0
    month.spent += ended.bill.cents or 0
    usage = month.jobs.setdefault(change.after.name, Usage())
    usage.instance_seconds += ended.bill.instance_seconds
    usage.unpriced += int(ended.bill.cents is None)
    usage.saved += ended.bill.saved_cents
    usage.warm_saved += ended.bill.warm_saved_cents or 0
    usage.by.update(ended.bill.by)
    if ended.preempted_for is not None and change.after.state is JobState.PREEMPTED:
        _month(tables, change, ended.claim.month or month_of(at)).takings.append(
            _taking(change, ended, ended.preempted_for, at=at)
        )


def bill_warm(tables: Tables, warm: WarmPool, *, at: datetime, retained: timedelta | None = None) -> None:
    line = warm.bill(at, retained=retained)
    if line is None or warm.month is None:
        return
    month = tables.months[warm.team, warm.month]
    month.committed += line.cents or 0
    month.spent += line.cents or 0
    usage = month.jobs.setdefault(line.job, Usage())
    usage.instance_seconds += line.instance_seconds
    usage.unpriced += int(line.cents is None)
    usage.by.update({cause.value: cents for cause, cents in line.by.items()})


def count_spot(tables: Tables, ended: Attempt, *, at: datetime) -> None:
    days, day = tables.spot_days, at.astimezone(UTC).date()
    for capacity, count in ended.vector.items():
        seconds = ended.bill.instance_seconds * count // ended.shape.instances
        if capacity.capacity_type is CapacityType.SPOT and (seconds or ended.spot.interruptions):
            known = days.get((capacity.instance_type, day), SpotDay(day=day))
            days[capacity.instance_type, day] = replace(
                known,
                interruptions=known.interruptions + ended.spot.interruptions,
                instance_seconds=known.instance_seconds + seconds,
            )


def _month(tables: Tables, change: Change, month: str) -> Month:
    return tables.months[change.after.spec.team, month]


def _taking(change: Change, ended: Attempt, preemptor: Preemptor, *, at: datetime) -> PreemptionEntry:
    spec = change.after.spec
    lost = change.after.spent.wasted.get("preemption", 0) - change.before.spent.wasted.get("preemption", 0)
    return PreemptionEntry(
        at=at,
        preemptor=preemptor.name,
        preemptor_team=preemptor.team or spec.team,
        victim=spec.name,
        victim_team=spec.team,
        instance_seconds_lost=lost * ended.shape.instances,
        cents_lost=None if ended.bill.cents is None else ended.bill.by.get("preemption", 0),
    )
