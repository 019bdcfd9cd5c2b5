"""Histograms of lengths: quantiles, what is left, and what a broader one adds."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.durations.histogram import BUCKETS_PER_DOUBLING, Histogram, bucket

from tests.builders import minutes

LENGTHS = st.lists(st.integers(1, 28 * 24 * 3600), min_size=1, max_size=50)
TWO = Histogram({18: 1, 23: 1})  # 512 to 724 s, 2896 to 4096 s


def of(seconds: list[int]) -> Histogram:
    weights: dict[int, float] = {}
    for one in seconds:
        number = bucket(timedelta(seconds=one))
        weights[number] = weights.get(number, 0) + 1
    return Histogram(weights)


@pytest.mark.parametrize(
    ("share", "longer_than", "expected"),
    [
        pytest.param(0.0, 0, 512, id="the shortest: where its bucket begins"),
        pytest.param(0.25, 0, 609, id="half way through the logarithms of the first bucket"),
        pytest.param(0.5, 0, 2896, id="the next bucket"),
        pytest.param(0.0, 700, 700, id="no shorter than what it has trained"),
        pytest.param(0.0, 1000, 2896, id="older than the first bucket: of the second"),
    ],
)
def test_quantiles_of_two_buckets(share: float, longer_than: float, expected: float) -> None:
    found = TWO.quantile(share, longer_than=timedelta(seconds=longer_than))
    assert found is not None
    assert found.total_seconds() == pytest.approx(expected, abs=1)


def test_older_than_anything_known_has_no_quantile() -> None:
    assert Histogram({18: 1}).quantile(0.5, longer_than=timedelta(hours=1)) is None
    assert Histogram({}).quantile(0.5) is None


@given(LENGTHS, st.sampled_from([0.1, 0.5, 0.9]))
def test_a_quantile_is_the_exact_one_within_a_bucket(seconds: list[int], share: float) -> None:
    ordered = sorted(seconds)
    exact = ordered[min(int(share * len(ordered)), len(ordered) - 1)]
    found = of(seconds).quantile(share)
    assert found is not None
    width = 2 ** (1 / BUCKETS_PER_DOUBLING) * 1.0001
    # within the bucket of the exact one, or between it and the one that comes before it in the list
    below = ordered[max(int(share * len(ordered)) - 1, 0)]
    assert below / width <= found.total_seconds() <= exact * width


@given(LENGTHS, st.floats(0, 0.999), st.integers(0, 28 * 24 * 3600))
def test_what_is_left_is_never_negative_and_rises_with_the_share(
    seconds: list[int], share: float, trained: int
) -> None:
    histogram, so_far = of(seconds), timedelta(seconds=trained)
    least, left = histogram.remaining(0.0, trained=so_far), histogram.remaining(share, trained=so_far)
    if left is None or least is None:
        assert histogram.ended_by(so_far) == pytest.approx(1.0, abs=1e-6)
    else:
        assert timedelta() <= least <= left


def test_the_share_that_has_ended_by_then() -> None:
    assert [TWO.ended_by(minutes(one)) for one in (5, 20, 90)] == [0.0, 0.5, 1.0]
    assert Histogram({}).ended_by(minutes(5)) == 0.0


def test_a_prior_counts_as_so_many_jobs_however_many_it_is_made_of() -> None:
    own, broad = Histogram({10: 6}), Histogram({20: 500, 21: 500})
    filled = own.with_prior(broad, jobs=2)
    assert filled.weights == {10: 6, 20: 1, 21: 1}
    assert own.with_prior(Histogram({}), jobs=2) is own
