"""Counting instances."""

from dataclasses import replace

from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.capacity import (
    allowed,
    free_now,
    lacking,
    minus,
    on_its_way,
    pool_vector,
    take,
)
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import PreemptionReservation

from tests.builders import NOON, A, B, of, pool, running, snapshot


def test_a_pool_counts_spot_apart() -> None:
    rules = replace(pool(2, b=0), spot_capacity={A: 3})
    spot = Capacity(A, CapacityType.SPOT)
    assert pool_vector(rules) == {Capacity(A): 2, Capacity(B): 0, spot: 3}


def test_free_is_what_nobody_uses_keeps_warm_or_is_held_room_for() -> None:
    hold = PreemptionReservation(preemptor="p", vector=of(1), victims=())
    world = snapshot(running("r", n=2), warm=of(3))
    assert free_now(world, of(9), [hold, replace(hold, preemptor="q")]) == of(2)
    assert free_now(world, of(4), []) == of(-1), "below zero after capacity was lowered"


def test_a_learned_limit_leaves_what_is_neither_used_nor_warm() -> None:
    learned = {Capacity(A): AccountLimit(limit=4, until=NOON, refusals=1)}
    world = snapshot(running("r", n=2), running("b", vector=of(1, B)), warm=of(1), account_limits=learned)
    assert allowed(world) == of(1)


def test_what_is_on_its_way_is_what_was_asked_to_stop() -> None:
    jobs = [
        running("a", n=2, state=JobState.PREEMPTING),
        running("b", state=JobState.STOPPING),
        running("c", n=9),
        running("d", n=9, state=JobState.STARTING),
    ]
    assert on_its_way(jobs) == of(3)


def test_taking_gives_back_with_minus_one_and_never_touches_what_it_takes_from() -> None:
    rest = dict(of(2))
    take(rest, {**of(3), **of(1, B)})
    assert rest == {**of(-1), **of(-1, B)}
    take(rest, of(3), times=-1)
    assert rest == {**of(2), **of(-1, B)}
    left = of(2)
    assert minus(left, of(1), of(4)) == of(-3)
    assert left == of(2)


def test_lacking_is_what_more_is_needed() -> None:
    assert lacking({**of(3), **of(1, B)}, {**of(1), **of(1, B)}) == of(2)
    assert lacking(of(1), {}) == of(1)
    assert lacking(of(1), of(-2)) == of(3)
    assert lacking(of(1), of(1)) == {}
