"""What teams have held, forgotten with a half-life."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.attempts import Attempt, AttemptEnd, Claim
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.planning.past_use import (
    HALF_LIFE,
    HALF_LIVES,
    PERIODS_CLEARED,
    Holding,
    UsePeriod,
    UseSums,
    added,
    hours_of,
)

from tests.builders import NOON, minutes, of

WEEK = timedelta(days=7)
DAY = timedelta(days=1)


def ended(
    *, hours: float, ago: timedelta = timedelta(), n: int = 1, half_life: timedelta | None = None
) -> Attempt:
    """So long ago, after so many hours."""
    end = NOON - ago
    since = end - timedelta(hours=hours)
    return Attempt(
        number=0,
        training_job_name="job",
        shape=Shape(vector=of(n)),
        max_runtime=DAY,
        claim=Claim(at=since, lease_until=since + minutes(5), half_life=half_life),
        end=AttemptEnd(at=end),
    )


def sums_of(*attempts: Attempt) -> UseSums:
    sums: UseSums = {}
    for one in attempts:
        assert one.ended_at is not None
        sums = added(sums, one, at=one.ended_at)
    return sums


def test_an_hour_just_used_is_an_hour() -> None:
    assert hours_of(sums_of(ended(hours=1)), WEEK, now=NOON) == pytest.approx(1, rel=0.003)


def test_after_a_half_life_half_of_it_is_left() -> None:
    sums = sums_of(ended(hours=1, n=4))
    now, later = (hours_of(sums, WEEK, now=NOON + wait) for wait in (timedelta(), WEEK))
    assert later == pytest.approx(now / 2)


def test_who_always_holds_an_instance_has_used_its_half_life_by_the_logarithm_of_two() -> None:
    assert hours_of(sums_of(ended(hours=24 * 365)), WEEK, now=NOON) == pytest.approx(168 / 0.693147, rel=1e-5)


def test_what_runs_counts_like_what_has_ended_just_now() -> None:
    live = Holding(instances=3, since=NOON - 2 * DAY, until=NOON).hours(WEEK, now=NOON)
    assert hours_of(sums_of(ended(hours=48, n=3)), WEEK, now=NOON) == pytest.approx(live)


def test_what_was_noted_under_another_half_life_counts_in_proportion() -> None:
    before = sums_of(ended(hours=24 * 3650, half_life=DAY))
    assert hours_of(before, WEEK, now=NOON) == pytest.approx(168 / 0.693147, rel=1e-5)


def test_an_attempt_of_earlier_releases_counts_with_the_default_half_life() -> None:
    (period,) = sums_of(ended(hours=1))
    assert period.half_life == HALF_LIFE == WEEK


def test_a_clock_that_runs_backwards_has_used_nothing() -> None:
    assert Holding(instances=1, since=NOON, until=NOON - DAY).hours(WEEK, now=NOON) == 0


def test_numbers_are_such_as_the_table_adds_exactly() -> None:
    period = UsePeriod.at(NOON, HALF_LIFE)
    last = period.begin + HALF_LIVES * HALF_LIFE - minutes(1)
    (amount,) = added({}, ended(hours=24 * 28, n=1000, ago=NOON - last), at=last).values()
    assert 10**30 < amount < 10**38


def test_sums_stay_few_however_long_a_team_goes_on() -> None:
    sums: UseSums = {}
    hour = timedelta(hours=1)
    for day in range(400):
        sums = added(sums, ended(hours=1, ago=-day * DAY, half_life=hour), at=NOON + day * DAY)
    assert len(sums) == 2


def test_what_is_cleared_of_a_row_is_what_is_left_out_of_the_sums() -> None:
    period = UsePeriod(half_life=WEEK, number=50)
    others = [UsePeriod(half_life=WEEK, number=number) for number in range(60)]
    assert [one for one in others if period.is_long_after(one)] == sorted(period.earlier())
    assert not period.is_long_after(UsePeriod(half_life=DAY, number=40))


def test_after_a_pause_the_sums_of_the_time_before_go() -> None:
    hour = timedelta(hours=1)
    long = PERIODS_CLEARED * HALF_LIVES * hour
    sums = added(
        sums_of(ended(hours=1, half_life=hour)), ended(hours=1, ago=-long, half_life=hour), at=NOON + long
    )
    assert len(sums) == 1


@pytest.mark.parametrize("text", ["", "604800", "x#1", "0#1", "-5#1", "604800#"])
def test_a_text_that_names_no_period(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        UsePeriod.parse(text)


def test_a_period_reads_back_from_its_text() -> None:
    period = UsePeriod.at(NOON, WEEK)
    assert UsePeriod.parse(str(period)) == period
    assert period.begin <= NOON < period.begin + HALF_LIVES * WEEK


instants = st.integers(0, 400 * 24 * 60)


@given(st.lists(instants, min_size=2, max_size=8, unique=True), st.integers(1, 500))
def test_an_attempt_cut_into_pieces_counts_like_the_whole(cuts: list[int], n: int) -> None:
    """Exactness: neither when it was noted nor in how many parts is in the sum."""
    now = NOON + timedelta(days=401)
    times = sorted(NOON + minutes(one) for one in cuts)

    def part(begin: int, end: int) -> Attempt:
        length = times[end] - times[begin]
        return ended(hours=length / timedelta(hours=1), ago=NOON - times[end], n=n)

    def pieces() -> Iterator[Attempt]:
        for number, _ in enumerate(pairwise(times)):
            yield part(number, number + 1)

    whole = sums_of(part(0, len(times) - 1))
    assert hours_of(sums_of(*pieces()), WEEK, now=now) == pytest.approx(
        hours_of(whole, WEEK, now=now), rel=1e-6
    )


@given(st.lists(st.tuples(instants, st.integers(1, 3000)), max_size=8), st.randoms())
def test_the_order_in_which_ends_are_noted_does_not_matter(
    runs: list[tuple[int, int]], chance: st.DataObject
) -> None:
    attempts = [ended(hours=length / 60, ago=minutes(at)) for at, length in runs]
    shuffled = list(attempts)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    at = NOON + DAY

    def total(some: list[Attempt]) -> UseSums:
        sums: UseSums = {}
        for one in some:
            sums = added(sums, one, at=at)
        return sums

    assert total(attempts) == total(shuffled)
