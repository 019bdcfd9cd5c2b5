"""Changes by calendars and reservations that are to come, in words, and the running jobs they would stop."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.core.jobs.instances import total
from trainmaster.core.planning.actions import Drain
from trainmaster.core.planning.drains import drained
from trainmaster.core.planning.snapshot import RunningJob, Snapshot
from trainmaster.core.planning.wait_reasons import minute_text
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.calendar import DAYS
from trainmaster.core.policy.reservation import Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingChange:
    """A change of one pool at an instant."""

    at: datetime
    capacity: Mapping[str, tuple[int, int]]
    """Instances before and after, of each type whose capacity changes."""
    begins: tuple[Reservation, ...]
    ends: tuple[Reservation, ...]
    stops: tuple[str, ...]
    """Names of jobs that run now and would be stopped then."""

    @property
    def text(self) -> str:
        """Say it in a line: ``Sat 2026-11-28 08:00 UTC: ml.p5.48xlarge 2 -> 0; stops a, b (running now)``."""
        parts = [f"{name} {before} -> {after}" for name, (before, after) in self.capacity.items()]
        for reservation in self.begins:
            kept = " + ".join(f"{count}x {name}" for name, count in reservation.instances.items())
            parts.append(
                f"reservation {reservation.name} begins: {kept} for team {reservation.team} alone"
                f" until {minute_text(reservation.to)}"
            )
        parts += [f"reservation {reservation.name} ends" for reservation in self.ends]
        if self.stops:
            parts.append(f"stops {', '.join(self.stops)} (running now)")
        return f"{DAYS[self.at.weekday()]} {minute_text(self.at)}: {'; '.join(parts)}"


def coming_changes(
    snapshot: Snapshot, before: PoolPolicy, pool: PoolPolicy, *, now: datetime, until: datetime
) -> Iterator[ComingChange]:
    """Yield what changes at once and up to an instant, in order.

    A job that is certain to have ended by then is not stopped; nobody knows which others will have.

    Args:
        snapshot: The pool as it is.
        before: The pool under the policy in force.
        pool: The pool under another policy, with its changes ahead.
        now: The instant of the snapshot.
        until: The last instant of interest.
    """
    running = snapshot.running
    coming = _change(running, before, pool, at=now)
    if coming.stops or ((before.calendar or pool.calendar) and coming.capacity):
        yield coming
    for change in pool.ahead:
        if change.at > until:
            return
        running = _left(running, coming.stops, at=change.at)
        after = pool.since(change)
        coming = _change(running, pool, after, at=change.at)
        yield coming
        pool = after


def _left(running: Sequence[RunningJob], stopped: Sequence[str], *, at: datetime) -> tuple[RunningJob, ...]:
    """Return the jobs that may still run at an instant."""
    return tuple(
        job
        for job in running
        if job.name not in stopped and (job.expected.ends_by is None or job.expected.ends_by > at)
    )


def _change(
    running: Sequence[RunningJob], before: PoolPolicy, after: PoolPolicy, *, at: datetime
) -> ComingChange:
    alone = Snapshot(running=tuple(running), used=total(job.vector for job in running))
    actions = drained(alone, after, now=at).actions
    types = dict.fromkeys([*before.capacity, *after.capacity])
    counts = {name: (before.capacity.get(name, 0), after.capacity.get(name, 0)) for name in types}
    return ComingChange(
        at=at,
        capacity={name: (old, new) for name, (old, new) in counts.items() if old != new},
        begins=tuple(reservation for reservation in after.reservations if reservation.from_ == at),
        ends=tuple(reservation for reservation in after.reservations if reservation.to == at),
        stops=tuple(action.job.name for action in actions if isinstance(action, Drain)),
    )
