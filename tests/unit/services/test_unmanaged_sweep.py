"""Whom a sweep looks at."""

from datetime import timedelta

from trainmaster.services.unmanaged_jobs import MOST_LOOKS, in_turn

from tests.builders import NOON

FIVE_MINUTES = timedelta(minutes=5)


def test_a_few_are_all_looked_at_each_time() -> None:
    assert in_turn(["a", "b"], now=NOON) == ["a", "b"]
    assert in_turn([], now=NOON) == []


def test_of_many_each_gets_its_look_in_turn() -> None:
    names = [f"stray{number}" for number in range(MOST_LOOKS * 2 + 5)]
    rounds = [in_turn(names, now=NOON + number * FIVE_MINUTES) for number in range(3)]
    assert all(len(one) == MOST_LOOKS for one in rounds)
    assert {name for one in rounds for name in one} == set(names)
