"""Reservations of a pool: instances that are one team's alone between two instants."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from trainmaster.core.errors import FieldError
from trainmaster.core.policy.calendar import CapacityFrom, Instant, instant_text
from trainmaster.core.policy.findings import Location, nearest, shown
from trainmaster.core.policy.keys import Section, needed
from trainmaster.core.policy.kinds import ByName, Whole
from trainmaster.core.policy.names import DEFAULT_TEAM, INSTANCE_TYPE, NAME, NAME_HINT, refuse_repeated_names
from trainmaster.core.policy.pool_quotas import Quota

MOST_RESERVATIONS = 50
"""Reservations that a pool may have: each pass looks at all of them."""
LONGEST = timedelta(days=366)
"""Longest reservation: its whole time is compared with the calendar when the policy is put."""
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Instants long before the end of all calendars, so that sums of them and spans are instants."""
_UNREAD = datetime.max.replace(tzinfo=UTC)
"""Stands for an instant that could not be read."""
_NOTHING_READ: Mapping[str, int] = {}
"""Stands for instances that could not be read."""
_MOST_NAMED = 3
"""Reservations that an error names beside its own."""
_INSTANCES = ByName(INSTANCE_TYPE, Whole(least=1))
_TIME_HINT = "write an instant with a zone, e.g. 2026-12-01T08:00Z"

Reserved = Mapping[str, Mapping[str, int]]
"""Instances by team, and by type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation(Section):
    """On-demand instances that are one team's alone for a time."""

    name: str = needed(NAME, f"Its name in reasons: {NAME_HINT}.", stand_in="", hint=NAME_HINT)
    team: str = needed(
        NAME, "The team whose jobs alone may use the instances.", stand_in="", hint="write the team's name"
    )
    from_: datetime = needed(
        Instant(), "The instant from which they are the team's.", stand_in=_UNREAD, hint=_TIME_HINT
    )
    to: datetime = needed(
        Instant(), "The instant from which all may use them again.", stand_in=_UNREAD, hint=_TIME_HINT
    )
    instances: Mapping[str, int] = needed(
        _INSTANCES,
        "On-demand instances by type, at least 1 of each.",
        stand_in=_NOTHING_READ,
        hint="write instances: {TYPE: COUNT}",
    )

    def holds_at(self, instant: datetime) -> bool:
        return self.from_ <= instant < self.to

    @property
    def span_text(self) -> str:
        return f"{instant_text(self.from_)} to {instant_text(self.to)}"

    def check(self, at: Location) -> None:
        if not self.instances and self.instances is not _NOTHING_READ and at.is_sound("instances"):
            at.below("instances").refuse("is empty", "write at least one, e.g. {ml.p5.48xlarge: 1}")
        if _UNREAD in {self.from_, self.to} or not at.is_sound("from", "to"):
            return
        if self.to <= self.from_:
            at.below("to").refuse(
                f"is not after from: {instant_text(self.to)}",
                f"write an instant after {instant_text(self.from_)}",
            )
        elif self.to > _LATEST:
            at.below("to").refuse(f"is too far off: {instant_text(self.to)}", _TIME_HINT)
        elif self.to - self.from_ > LONGEST:
            last = instant_text(self.from_ + LONGEST)
            at.below("to").refuse(
                f"is more than {LONGEST.days} days after from: {instant_text(self.to)}",
                f"write an instant until {last}",
            )


def check_reservations(
    reservations: Sequence[Reservation], capacity: Mapping[str, int], pool: Location
) -> None:
    """Refuse more than a pass can look at, repeated names, and types that the pool does not have."""
    at = pool.below("reservations")
    if len(reservations) > MOST_RESERVATIONS:
        at.refuse(f"has {len(reservations)} reservations", f"write at most {MOST_RESERVATIONS}")
    refuse_repeated_names((reservation.name for reservation in reservations), at)
    for index, reservation in enumerate(reservations if pool.is_sound("capacity") else ()):
        for instance_type in reservation.instances:
            if instance_type not in capacity:
                place = at.item(index).below("instances").below(instance_type)
                hint = f"on-demand types of the pool: {', '.join(capacity) or 'none'}"
                place.refuse("is not in the capacity of the pool", nearest(instance_type, capacity) or hint)


def warn_of_small_quotas(
    reservations: Sequence[Reservation], quotas: Mapping[str, Quota], at: Location
) -> None:
    """Warn of instances that the team's quota and borrowing limit keep it from using: they stand idle."""
    for index, reservation in enumerate(reservations):
        quota = quotas.get(reservation.team)
        for instance_type, count in reservation.instances.items():
            limit = (quota.borrowing_limit or {}).get(instance_type) if quota else None
            if quota is None or limit is None:
                continue
            most = quota.nominal.get(instance_type, 0) + limit
            if count > most:
                at.item(index).below("instances").below(instance_type).warn(
                    f"is more than team {reservation.team} may use: its quota and borrowing limit are {most}",
                    f"write at most {most}, or raise the quota",
                )


def check_reserving_teams(reservations: Sequence[Reservation], teams: Sequence[str], at: Location) -> None:
    """Refuse a reservation for a team that the policy does not have: its instances would stand idle."""
    known = teams or [DEFAULT_TEAM]
    for index, reservation in enumerate(reservations):
        if reservation.team and reservation.team not in known:
            at.item(index).below("team").refuse(
                f"there is no team {shown(reservation.team)}: its instances would stand idle from"
                f" {reservation.span_text}",
                nearest(reservation.team, known) or f"teams of the policy: {', '.join(known)}",
            )


def with_reserved(
    changes: Sequence[CapacityFrom], reservations: Iterable[Reservation], *, until: datetime
) -> tuple[CapacityFrom, ...]:
    """Return the changes of a pool's capacity, with those by its reservations among them, in order.

    Args:
        changes: Changes by the calendar; the first is the capacity at the first instant of interest.
        reservations: All that the pool has.
        until: The instant after the last.
    """
    since = changes[0].at
    known = [reservation for reservation in reservations if reservation.to > since]
    if not known:
        return tuple(changes)
    by_calendar = {change.at: change for change in changes}
    begins_and_ends = {instant for reserved in known for instant in (reserved.from_, reserved.to)}
    merged: list[CapacityFrom] = []
    in_force = changes[0]
    for instant in sorted(by_calendar.keys() | {at for at in begins_and_ends if since < at < until}):
        in_force = by_calendar.get(instant, in_force)
        change = replace(in_force, at=instant, reserved=reserved_at(known, instant))
        if not merged or instant in by_calendar or change.reserved != merged[-1].reserved:
            merged.append(change)
    return tuple(merged)


def reserved_at(reservations: Iterable[Reservation], instant: datetime) -> Reserved:
    """Return what each team has reserved at an instant; empty if no reservation holds then."""
    reserved: dict[str, dict[str, int]] = {}
    for reservation in reservations:
        if reservation.holds_at(instant):
            by_type = reserved.setdefault(reservation.team, {})
            for instance_type, count in reservation.instances.items():
                by_type[instance_type] = by_type.get(instance_type, 0) + count
    return reserved


def overbooked(
    reservations: Sequence[Reservation], changes: Sequence[CapacityFrom], field: str
) -> Iterator[FieldError]:
    """Yield an error for each reservation and type of which more is reserved than the pool has at an instant.

    The error is that of the later in the list of those that hold then, and names the first such instant.

    Args:
        reservations: All that the pool has.
        changes: The pool's capacity over their time, from ``with_reserved``.
        field: The path of the list in the document.
    """
    seen: set[tuple[int, str]] = set()
    for number, change in enumerate(changes):
        holding = [index for index, reserved in enumerate(reservations) if reserved.holds_at(change.at)]
        for instance_type in dict.fromkeys(
            name for index in holding for name in reservations[index].instances
        ):
            users = [index for index in holding if instance_type in reservations[index].instances]
            wanted = sum(reservations[index].instances[instance_type] for index in users)
            there = change.capacity.get(instance_type, 0)
            if wanted <= there or (users[-1], instance_type) in seen:
                continue
            seen.add((users[-1], instance_type))
            ends = [later.at for later in changes[number + 1 : number + 2]]
            until = min([*ends, *(reservations[index].to for index in users)])
            yield _overbooking(
                [reservations[index] for index in users],
                instance_type,
                field=f"{field}[{users[-1]}].instances.{instance_type}",
                there=there,
                span=f"from {instant_text(change.at)} to {instant_text(until)}",
            )


def _overbooking(
    reservations: Sequence[Reservation], instance_type: str, *, field: str, there: int, span: str
) -> FieldError:
    *others, last = reservations
    beside = sum(other.instances[instance_type] for other in others)
    wanted = beside + last.instances[instance_type]
    names = [other.name for other in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        names.append(f"{len(others) - _MOST_NAMED} more")
    with_others = f" with {', '.join(names)}" if names else ""
    left = there - beside
    lower = f"write at most {left}" if left > 0 else "remove it"
    return FieldError(
        field=field,
        message=f"reserves {wanted}{with_others}, the pool has {there} {span}",
        hint=f"{lower}, choose other instants, or raise the capacity",
    )
