"""Distributions of run times: what has ended, what has not, and what is drawn from both."""

from datetime import timedelta

import pytest
from trainmaster.core.forecast.durations import Lengths, shares
from trainmaster.core.forecast.run_times import bucket

from tests.builders import minutes

DAY = bucket(timedelta(days=1))
TEN, HOUR = bucket(minutes(10)), bucket(minutes(60))


def test_without_unfinished_jobs_shares_are_counts() -> None:
    assert shares({TEN: 3, HOUR: 1}, (), limit=DAY) == {TEN: 0.75, HOUR: 0.25}


def test_an_unfinished_job_is_longer_than_it_has_trained() -> None:
    # Of two that outlast ten minutes, one has ended: the one at half an hour ends like it.
    found = shares({TEN: 2, HOUR: 1}, [minutes(30)], limit=DAY)
    assert found == pytest.approx({TEN: 0.5, HOUR: 0.5})


def test_what_outlasts_all_others_may_last_up_to_the_limit() -> None:
    found = shares({TEN: 1}, [minutes(60)], limit=HOUR + 1)
    assert found == pytest.approx({TEN: 0.5, HOUR: 0.25, HOUR + 1: 0.25})


def test_as_long_as_no_job_has_ended_nothing_is_known() -> None:
    assert shares({}, [minutes(5)], limit=DAY) == {}
    assert Lengths({}).draw(0.5, longer_than=timedelta()) is None


@pytest.mark.parametrize(
    ("chance", "longer_than", "expected"),
    [
        pytest.param(0.0, 0, 512, id="the shortest: where its bucket begins"),
        pytest.param(0.25, 0, 609, id="half way through the logarithms of the first bucket"),
        pytest.param(0.5, 0, 2896, id="the next bucket"),
        pytest.param(0.0, 700, 700, id="no shorter than what it has trained"),
        pytest.param(0.0, 1000, 2896, id="older than the first bucket: of the second"),
    ],
)
def test_draws_are_quantiles(chance: float, longer_than: float, expected: float) -> None:
    lengths = Lengths({18: 1, 23: 1})  # 512 to 724 s, 2896 to 4096 s
    drawn = lengths.draw(chance, longer_than=timedelta(seconds=longer_than))
    assert drawn is not None
    assert drawn.total_seconds() == pytest.approx(expected, abs=1)


def test_older_than_anything_known_gives_no_draw() -> None:
    assert Lengths({18: 1}).draw(0.5, longer_than=timedelta(hours=1)) is None
