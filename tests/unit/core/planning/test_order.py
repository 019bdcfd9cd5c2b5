"""Who goes first."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.jobs.model import JobSpec, Spent
from trainmaster.core.jobs.run_time import likely_left
from trainmaster.core.planning.order import score_after, score_again, score_of
from trainmaster.core.policy import Aging, Order

from tests.builders import NOON, job, minutes, pool

PLAIN = pool()
BY_LENGTH = replace(pool(), order=Order(shortest_first=True))
NO_AGING = replace(pool(), order=Order(aging=None))
FAST_AGING = replace(pool(), order=Order(aging=Aging(per=timedelta(hours=1), add=2)))


def spec(ago: timedelta = timedelta(), **fields: Any) -> JobSpec:
    return job(submitted_at=NOON - ago, **fields).spec


DAY = timedelta(days=1)


def lengths(*of: float) -> LikelyLengths:
    return LikelyLengths(lengths=tuple(minutes(one) for one in of))


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
            (spec(timedelta(hours=27), max_runtime=timedelta(hours=2)), 0),
            id="shortest first: twice as long is like a day later, among usual lengths",
        ),
        pytest.param(
            BY_LENGTH,
            (spec(7 * DAY, max_runtime=28 * DAY), 0),
            (spec(likely=lengths(1)), 0),
            id="shortest first: whoever comes a week later passes nobody",
        ),
        pytest.param(
            BY_LENGTH,
            (spec(likely=lengths(*[5] * 9, 30), predicted=timedelta(hours=9)), 0),
            (spec(likely=lengths(10)), 0),
            id="shortest first: by the lengths that are likely, before anything else",
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


def test_who_has_trained_past_its_short_lengths_goes_later_and_who_saved_most_of_them_earlier() -> None:
    new = job(likely=lengths(10, 10, 10, 50), max_runtime=DAY, ranked_by=BY_LENGTH.order_key)
    new = replace(new, score=score_of(new.spec, 0, BY_LENGTH))
    outlasted = replace(new, attempt=1, checkpointed=minutes(20))
    nearly_done = replace(new, attempt=1, checkpointed=minutes(48))
    assert score_after(new, outlasted) == score_again(outlasted, 0, BY_LENGTH) > new.score
    assert score_after(new, nearly_done) == score_again(nearly_done, 0, BY_LENGTH) < new.score


def test_what_was_lost_is_trained_again() -> None:
    lost = Spent(wasted={"preemption": 48 * 60})
    new = job(likely=lengths(10, 10, 10, 50), max_runtime=DAY)
    assert likely_left(replace(new, attempt=1, spent=lost)) == minutes(50)
    assert likely_left(replace(new, attempt=1, checkpointed=minutes(48))) == minutes(2)


def test_in_another_order_a_job_comes_back_in_its_old_turn() -> None:
    new = job(likely=lengths(10, 50), score=77, ranked_by=PLAIN.order_key)
    assert score_after(new, replace(new, attempt=1, checkpointed=minutes(20))) == 77
