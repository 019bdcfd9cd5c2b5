"""Distributions of run times: what has ended, what has not, and what is drawn from both."""

from datetime import timedelta

import pytest
from trainmaster.core.durations.histogram import bucket
from trainmaster.core.forecast.durations import shares

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
