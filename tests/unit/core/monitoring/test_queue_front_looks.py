"""For how long the first of an order has not been looked at."""

from datetime import timedelta

import pytest
from trainmaster.core.monitoring.queue_front_looks import NAMES, Front, Look, Unseen, judged

from tests.builders import NOON, minutes, waiting

FIRST = waiting("first", submitted_at=NOON - minutes(60))


def test_nobody_waits() -> None:
    verdict = judged(None, Front(look=Look(at=NOON - minutes(60), first=("gone",))), now=NOON)
    assert verdict.unseen_for == timedelta()


def test_a_look_that_had_it_counts_from_there_on() -> None:
    front = Front(look=Look(at=NOON - minutes(2), first=("started", "first")))
    assert judged(FIRST, front, now=NOON).unseen_for == minutes(2)


def test_without_any_pass_it_counts_from_the_submission() -> None:
    assert judged(FIRST, Front(), now=NOON).unseen_for == minutes(60)


def test_who_came_after_the_look_counts_from_the_submission() -> None:
    newcomer = waiting("newcomer", submitted_at=NOON - minutes(1))
    front = Front(look=Look(at=NOON - minutes(2), first=("first",)))
    assert judged(newcomer, front, now=NOON).unseen_for == minutes(1)


def test_whom_looks_leave_out_is_remembered_and_grows_older() -> None:
    others = Look(at=NOON - timedelta(seconds=30), first=("other",))
    noticed = judged(FIRST, Front(look=others), now=NOON)
    assert noticed.unseen == Unseen(name="first", since=NOON)
    later = NOON + minutes(6)
    front = Front(look=Look(at=later, first=("other",)), unseen=noticed.unseen)
    assert judged(FIRST, front, now=later).unseen_for == minutes(6)


def test_another_one_left_out_is_counted_anew() -> None:
    front = Front(
        look=Look(at=NOON, first=("other",)), unseen=Unseen(name="started since", since=NOON - minutes(9))
    )
    verdict = judged(FIRST, front, now=NOON)
    assert (verdict.unseen_for, verdict.unseen) == (timedelta(), Unseen(name="first", since=NOON))


def test_one_that_is_looked_at_again_is_forgotten() -> None:
    front = Front(look=Look(at=NOON, first=("first",)), unseen=Unseen(name="first", since=NOON - minutes(9)))
    assert judged(FIRST, front, now=NOON).unseen is None


@pytest.mark.parametrize("count", [1, NAMES, NAMES + 40])
def test_a_look_writes_down_the_first_few_in_their_order(count: int) -> None:
    entries = [waiting(f"job-{number:02d}", score=number) for number in range(count)]
    look = Look.over(reversed(entries), at=NOON)
    assert look.first == tuple(one.name for one in entries[:NAMES])
