"""What attempts and warm pools cost a team, and how spot instances fared; written with a change."""

from dataclasses import replace
from datetime import UTC, datetime

from trainmaster.core.costs.ledger import PreemptionEntry, month_of
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.jobs.instances import CapacityType
from trainmaster.core.jobs.model import Attempt, JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.snapshot import WarmPool

from tests.memory.tables import Month, Tables, Usage


def charge(tables: Tables, change: Change, *, at: datetime) -> None:
    """Reservations and bills, in the month of the claim."""
    for live, sign in ((change.before.live, -1), (change.after.live, +1)):
        if live is not None and live.month is not None and live.reserved_cents:
            _month(tables, change, live.month).committed += sign * live.reserved_cents
    ended = change.ended
    if ended is None or ended.month is None:
        return
    month = _month(tables, change, ended.month)
    month.committed += ended.cents or 0
    month.spent += ended.cents or 0
    usage = month.jobs.setdefault(change.after.name, Usage())
    usage.instance_seconds += ended.instance_seconds
    usage.unpriced += int(ended.cents is None)
    usage.saved += ended.saved_cents
    usage.by.update(ended.cents_by)
    if ended.taken_by is not None and change.after.state is JobState.PREEMPTED:
        _month(tables, change, ended.month or month_of(at)).takings.append(_taking(change, ended, at=at))


def bill_warm(tables: Tables, warm: WarmPool, *, at: datetime) -> None:
    line = warm.bill(at)
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
        seconds = ended.instance_seconds * count // ended.shape.instances
        if capacity.capacity_type is CapacityType.SPOT and (seconds or ended.interruptions):
            known = days.get((capacity.instance_type, day), SpotDay(day=day))
            days[capacity.instance_type, day] = replace(
                known,
                interruptions=known.interruptions + ended.interruptions,
                instance_seconds=known.instance_seconds + seconds,
            )


def _month(tables: Tables, change: Change, month: str) -> Month:
    return tables.months[change.after.spec.team, month]


def _taking(change: Change, ended: Attempt, *, at: datetime) -> PreemptionEntry:
    spec = change.after.spec
    lost = change.after.wasted.get("preemption", 0) - change.before.wasted.get("preemption", 0)
    return PreemptionEntry(
        at=at,
        preemptor=ended.taken_by or "",
        preemptor_team=ended.taken_by_team or spec.team,
        victim=spec.name,
        victim_team=spec.team,
        instance_seconds_lost=lost * ended.shape.instances,
        cents_lost=None if ended.cents is None else ended.cents_by.get("preemption", 0),
    )
