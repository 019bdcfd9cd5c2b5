"""Who goes first."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.model import JobSpec
from trainmaster.core.planning.order import score_of
from trainmaster.core.policy import Aging, Order

from tests.builders import NOON, job, minutes, pool

PLAIN = pool()
BY_LENGTH = replace(pool(), order=Order(shortest_first=True))
NO_AGING = replace(pool(), order=Order(aging=None))
FAST_AGING = replace(pool(), order=Order(aging=Aging(per=timedelta(hours=1), add=2)))


def spec(ago: timedelta = timedelta(), **fields: Any) -> JobSpec:
    return job(submitted_at=NOON - ago, **fields).spec


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("rules", "first", "second"),
    [
        pytest.param(PLAIN, (spec(minutes(1)), 0), (spec(), 0), id="equal priority: who came first"),
        pytest.param(PLAIN, (spec(), 1), (spec(DAY - minutes(1)), 0), id="a point outweighs nearly a day"),
        pytest.param(PLAIN, (spec(DAY + minutes(1)), 0), (spec(), 1), id="and not more than a day"),
        pytest.param(FAST_AGING, (spec(minutes(31)), 0), (spec(), 1), id="ageing as fast as the policy says"),
        pytest.param(FAST_AGING, (spec(), 1), (spec(minutes(29)), 0), id="and no faster"),
        pytest.param(
            NO_AGING, (spec(), 1), (spec(9999 * DAY), 0), id="without ageing a point outweighs any wait"
        ),
        pytest.param(
            NO_AGING, (spec(minutes(1)), 0), (spec(), 0), id="without ageing age decides among equals"
        ),
        pytest.param(
            PLAIN,
            (spec(minutes(1), max_runtime=timedelta(hours=9)), 0),
            (spec(max_runtime=minutes(1)), 0),
            id="length counts for nothing unless the policy says so",
        ),
        pytest.param(
            BY_LENGTH,
            (spec(max_runtime=timedelta(hours=1)), 0),
            (spec(timedelta(hours=999), max_runtime=timedelta(hours=2)), 0),
            id="shortest first: an hour longer is like a thousand hours later",
        ),
        pytest.param(
            BY_LENGTH,
            (spec(timedelta(hours=1001), max_runtime=timedelta(hours=2)), 0),
            (spec(max_runtime=timedelta(hours=1)), 0),
            id="shortest first: nobody waits for ever",
        ),
        pytest.param(
            BY_LENGTH,
            (spec(predicted=minutes(5), max_runtime=timedelta(hours=9)), 0),
            (spec(max_runtime=minutes(6)), 0),
            id="shortest first: by what such jobs took before",
        ),
        pytest.param(
            BY_LENGTH,
            (spec(predicted=timedelta(hours=9), max_runtime=minutes(5)), 0),
            (spec(max_runtime=minutes(6)), 0),
            id="shortest first: never longer than it may run",
        ),
    ],
)
def test_order(rules: Any, first: tuple[JobSpec, int], second: tuple[JobSpec, int]) -> None:
    assert score_of(*first, rules) < score_of(*second, rules)


def test_a_score_is_the_time_of_entry_less_what_priority_is_worth() -> None:
    assert score_of(spec(), 0, PLAIN) == 1_793_620_800_000
    assert score_of(spec(), 2, PLAIN) == 1_793_620_800_000 - 2 * 86_400_000
