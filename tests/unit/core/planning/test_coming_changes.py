"""What calendars and reservations are going to change, in words, and whom they would stop."""

from dataclasses import replace
from datetime import timedelta

from trainmaster.core.planning.coming_changes import ComingChange, coming_changes
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.reservation import Reservation, reserved_at

from tests.builders import NOON, A, pool, running, snapshot

WEEK = NOON + timedelta(days=7)


def found(world: Snapshot, rules: PoolPolicy, *, before: PoolPolicy | None = None) -> list[ComingChange]:
    return list(coming_changes(world, before or rules, rules, now=NOON, until=WEEK))


def lowered(*ahead: tuple[float, int]) -> PoolPolicy:
    changes = tuple(
        CapacityFrom(at=NOON + timedelta(hours=hours), capacity={A: count}, stops=frozenset({A}))
        for hours, count in ahead
    )
    return replace(pool(2), ahead=changes)


def test_each_change_says_what_it_does_and_whom_it_stops_once() -> None:
    world = snapshot(running("a"), running("b", priority=5))
    texts = [change.text for change in found(world, lowered((4, 1), (20, 0), (30, 2), (24 * 8, 0)))]
    assert texts == [
        "Mon 2026-11-02 16:00 UTC: ml.a.xlarge 2 -> 1; stops a (running now)",
        "Tue 2026-11-03 08:00 UTC: ml.a.xlarge 1 -> 0; stops b (running now)",
        "Tue 2026-11-03 18:00 UTC: ml.a.xlarge 0 -> 2",
    ]


def test_a_job_that_is_certain_to_have_ended_is_not_stopped() -> None:
    world = snapshot(running("a", ends_by=NOON + timedelta(hours=4)), running("b", priority=5))
    (change,) = found(world, lowered((4, 0)))
    assert change.stops == ("b",)


def test_a_reservation_is_named_at_both_of_its_ends() -> None:
    begin, end = NOON + timedelta(hours=1), NOON + timedelta(hours=3)
    kept = Reservation(name="demo-day", team="vision", from_=begin, to=end, instances={A: 1})
    rules = replace(
        pool(2),
        reservations=(kept,),
        ahead=tuple(
            CapacityFrom(at=at, capacity={A: 2}, reserved=reserved_at([kept], at)) for at in (begin, end)
        ),
    )
    world = snapshot(running("a"), running("b", priority=5))
    first, last = found(world, rules)
    assert first.text == (
        "Mon 2026-11-02 13:00 UTC: reservation demo-day begins: 1x ml.a.xlarge for team vision alone until"
        " 2026-11-02 15:00 UTC; stops a (running now)"
    )
    assert last.text == "Mon 2026-11-02 15:00 UTC: reservation demo-day ends"


def test_what_changes_at_once_comes_first() -> None:
    world = snapshot(running("a"), running("b", priority=5))
    now = replace(pool(1), base={A: 2}, stops=frozenset({A}))
    (change,) = found(world, now, before=pool(2))
    assert change.text == "Mon 2026-11-02 12:00 UTC: ml.a.xlarge 2 -> 1; stops a (running now)"
    assert found(world, pool(1), before=pool(2)) == [], "a lowered capacity stops nobody by itself"
