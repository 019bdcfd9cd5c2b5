"""What ended jobs say about the next one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.durations.decay import FORGOTTEN, HALF_LIFE, eras_read, weight_at
from trainmaster.core.durations.histogram import Histogram, bucket
from trainmaster.core.durations.learned import SHARES, LikelyLengths, corrected, likely_lengths
from trainmaster.core.durations.learned_rows import LATEST, LearnedRow, merged

from tests.builders import NOON, minutes

DAY = timedelta(days=1)
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


def row(*runs: float, at: datetime = NOON) -> LearnedRow:
    found = LearnedRow(newest=at)
    for length in runs:
        found = found.after(minutes(length), ended_at=at)
    return found


def expected(found: LikelyLengths | None, trained: float = 0) -> float:
    assert found is not None
    return found.remaining(minutes(trained), at_most=DAY) / minutes(1)


def test_a_run_counts_half_as_much_as_one_a_half_life_later() -> None:
    old, new = bucket(minutes(10)), bucket(minutes(90))
    jobs = replace(row(10, 10, at=NOON - HALF_LIFE).after(minutes(90), ended_at=NOON), latest=()).jobs
    assert jobs.weights == pytest.approx({old: 1.0, new: 1.0}, rel=1e-3)


def test_a_kind_that_has_not_run_for_weeks_keeps_what_it_has_learned() -> None:
    assert replace(row(10, 10, at=NOON - 5 * HALF_LIFE), latest=()).jobs.total == pytest.approx(2.0)


def test_the_order_in_which_runs_are_added_makes_no_difference() -> None:
    runs = [(minutes(5), NOON), (minutes(50), NOON + DAY), (minutes(500), NEW_YEAR)]
    found = []
    for order in permutations(runs):
        one = LearnedRow(newest=NOON)
        for trained, at in order:
            one = one.after(trained, ended_at=at)
        found.append(one.weights)
    assert all(weights == found[0] for weights in found)


def test_years_are_read_together_as_long_as_the_old_one_counts() -> None:
    first = LearnedRow(newest=NEW_YEAR - DAY).after_placed(minutes(10), 4, ended_at=NEW_YEAR - DAY)
    over = first.after_placed(minutes(20), 9, ended_at=NEW_YEAR + DAY)
    over = replace(over, latest=(minutes(20), minutes(10)))
    assert replace(over, latest=()).jobs.total == pytest.approx(1 + 2 ** (-2 / 7), rel=1e-2)
    parts = [
        replace(
            over,
            weights={year: counts},
            placed={year: over.placed[year]},
            newest=NEW_YEAR + sign * DAY,
            latest=(minutes(length),),
        )
        for (year, counts), sign, length in zip(over.weights.items(), (-1, 1), (10, 20), strict=True)
    ]
    assert merged(parts) == over
    assert over.read(NEW_YEAR + DAY) == over
    later = over.read(NEW_YEAR + FORGOTTEN + DAY)
    assert later is not None
    assert set(later.weights) == set(later.placed) == {2027}
    assert later.latest == over.latest
    assert row(10).read(NOON + timedelta(days=800)) is None
    assert eras_read(NEW_YEAR) == (2027, 2026)


def test_the_weight_of_a_run_fits_into_a_number_of_the_table() -> None:
    last = weight_at(NEW_YEAR - timedelta(seconds=1))
    assert weight_at(datetime(2026, 1, 1, tzinfo=UTC)) == 1024
    assert 10**18 < last < 10**20  # a million runs in the last second of a year: 26 of 38 digits


@pytest.mark.parametrize(
    ("rows", "low", "high"),
    [
        pytest.param([None, row(*[60.0] * 9)], 45, 80, id="no run of its program: as the team's"),
        pytest.param([row(5), row(*[60.0] * 99)], 20, 50, id="one run of it: between the two"),
        pytest.param([row(*[5.0] * 30), row(*[60.0] * 99)], 4, 12, id="thirty: its own"),
        pytest.param([None, None, row(7)], 5, 9, id="another team's, where there is no more"),
    ],
)
def test_the_more_runs_of_its_kind_the_less_the_broader_ones_count(
    rows: list[LearnedRow | None], low: float, high: float
) -> None:
    assert low < expected(likely_lengths(rows, limit=DAY)) < high


def test_nothing_has_ended_so_nothing_is_likely() -> None:
    assert likely_lengths([None, None], limit=DAY) is None


def test_no_length_is_above_the_limit() -> None:
    found = likely_lengths([row(600, 900, 1200)], limit=minutes(60))
    assert found is not None
    assert found.lengths == (minutes(60),) * 10


def test_what_has_trained_past_the_short_lengths_is_one_of_the_long_ones() -> None:
    found = likely_lengths([row(*[10.0] * 50, *[600.0] * 50)], limit=DAY)
    assert 250 < expected(found) < 400
    assert 500 < expected(found, trained=30) < 700


def test_who_has_outlasted_all_goes_on_for_as_long_again_but_for_its_limit() -> None:
    found = likely_lengths([row(10)], limit=DAY)
    assert found is not None
    assert expected(found, trained=100) == pytest.approx(100, rel=0.01)
    assert found.remaining(minutes(100), at_most=minutes(30)) == minutes(30)
    assert found.ended_by(minutes(100)) == 1.0


@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=10),
    st.integers(0, 3 * 10**6),
    st.integers(0, 10**6),
)
def test_what_is_left_lies_between_nothing_and_the_limit(lengths: list[int], trained: int, most: int) -> None:
    found = LikelyLengths(lengths=tuple(timedelta(seconds=one) for one in sorted(lengths)))
    left = found.remaining(timedelta(seconds=trained), at_most=timedelta(seconds=most))
    assert timedelta() <= left <= timedelta(seconds=most)


def test_after_a_rush_the_last_runs_tell_what_is_run_now() -> None:
    rush = row(*[1.0] * 600)
    for number in range(40):
        rush = rush.after(minutes(100), ended_at=NOON + timedelta(minutes=number))
    assert len(rush.latest) == LATEST
    by_days = expected(likely_lengths([replace(rush, latest=())], limit=DAY))
    assert expected(likely_lengths([rush], limit=DAY)) > 1.5 * by_days


def test_a_row_without_last_runs_tells_what_it_told_before_they_were_kept() -> None:
    stored = LearnedRow(newest=NOON, weights=row(5, 50, 500).weights)
    assert stored.jobs == replace(row(5, 50, 500), latest=()).jobs
    assert stored.places.total == 0


def placed(*jobs: int) -> tuple[float, ...]:
    """Correct the shares after so many jobs at each place."""
    return corrected(Histogram({place: float(count) for place, count in enumerate(jobs)}))


@pytest.mark.parametrize(
    ("jobs", "low", "high"),
    [
        pytest.param((), 0.85, 0.85, id="nothing has ended"),
        pytest.param((5, *[10] * 9, 5), 0.849, 0.851, id="as expected: a twentieth outlast the last"),
        pytest.param((2, *[4] * 9, 62), 0.95, 0.99, id="most outlast all: longer"),
        pytest.param((90, *[1] * 9, 1), 0.5, 0.8, id="most end at once: shorter"),
    ],
)
def test_a_quantile_is_corrected_by_how_many_jobs_outlasted_it(
    jobs: tuple[int, ...], low: float, high: float
) -> None:
    shares = placed(*jobs)
    assert low <= round(shares[8], 6) <= high
    assert list(shares) == sorted(shares)
    assert all(0 < share < 1 for share in shares)


def test_a_surprise_or_two_correct_little() -> None:
    assert placed(*[0] * 10, 2)[4] == pytest.approx(SHARES[4], abs=0.07)


def test_jobs_that_outlast_what_was_predicted_make_the_next_prediction_longer() -> None:
    kind, shape = row(*[10.0] * 20, *[100.0] * 5), row(*[10.0] * 20, *[100.0] * 5)
    before = likely_lengths([kind, shape], limit=DAY)
    for _ in range(60):
        shape = shape.after_placed(minutes(10), 10, ended_at=NOON)
    after = likely_lengths([kind, shape], limit=DAY)
    assert before is not None
    assert after is not None
    assert after.quantile(0.5) > before.quantile(0.5)


def test_a_quantile_lies_between_the_lengths_that_are_kept() -> None:
    lengths = LikelyLengths(lengths=tuple(minutes(2**power) for power in range(10)))
    assert lengths.quantile(0.05) == minutes(1)
    assert lengths.quantile(0.9) / minutes(1) == pytest.approx(2**8.5)
    assert lengths.quantile(0.999) == minutes(512)
    assert [lengths.place_of(minutes(length)) for length in (0.5, 1, 1.5, 512, 513)] == [0, 0, 1, 9, 10]
    assert LikelyLengths(lengths=(timedelta(),) * 10).quantile(0.5) == timedelta()
