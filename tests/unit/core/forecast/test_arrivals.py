"""Jobs yet to come: at the rate of those that came, and only those that go first."""

from dataclasses import replace
from datetime import timedelta
from itertools import takewhile

import pytest
from trainmaster.core.forecast.arrivals import Arrivals, shape_of
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.policy import Order, Quota

from tests.builders import NOON, A, B, minutes, of, pool, waiting

RULES = replace(pool(4), order=Order(aging=None))
"""Priority alone decides."""
LANE = RunTimes(
    last=minutes(10),
    previous=minutes(10),
    since=NOON - timedelta(days=10),
    by_month={"2026-09": {9: 10_000}, "2026-10": {9: 200}, "2026-11": {9: 40, 0: 500}},
)


def arrivals(**fields: object) -> Arrivals:
    values: dict[str, object] = {
        "pool": RULES,
        "run_times": {("vision", f"{A}=2"): LANE},
        "saving": 1.0,
        "asking": waiting("mine", score=pool_score()),
        "now": NOON,
    }
    return Arrivals(**values | fields)  # type: ignore[arg-type]


def pool_score() -> int:
    return int(NOON.timestamp() * 1000)


def test_they_come_at_the_rate_of_this_month_and_the_last() -> None:
    """240 in ten days: one an hour, over thirty days."""
    until = NOON + timedelta(days=30)
    came = list(takewhile(lambda job: job.submitted_at < until, arrivals().drawn("a")))
    assert len(came) == pytest.approx(720, rel=0.12)
    assert {(job.team, job.priority) for job in came} == {("vision", 9)}
    assert came[0].vector == of(2)
    assert came == sorted(came, key=lambda job: job.submitted_at)


def test_nobody_comes_who_would_not_go_first() -> None:
    urgent = waiting("mine", priority=99, score=pool_score() - RULES.boost_ms(99))
    assert list(arrivals(asking=urgent).drawn("a")) == []


def test_with_ageing_they_go_first_until_their_priority_is_made_up_for() -> None:
    """Nine points are worth nine days."""
    came = list(arrivals(pool=pool(4)).drawn("a"))
    assert timedelta(days=8) < came[-1].submitted_at - NOON < timedelta(days=9)


def test_with_quotas_everybody_counts() -> None:
    rules = replace(RULES, quotas={"vision": Quota(nominal={A: 2})})
    coming = arrivals(pool=rules).drawn("a")
    assert {next(coming).priority for _ in range(100)} == {0, 9}


def test_some_write_checkpoints() -> None:
    coming = arrivals(saving=0.5).drawn("a")
    assert 30 < sum(next(coming).has_checkpoint for _ in range(100)) < 70


@pytest.mark.parametrize(
    ("lane", "expected"),
    [
        pytest.param(f"{A}=2", of(2), id="one shape"),
        pytest.param(f"{A}=1@subnet-1>{B}=4:spot", of(1), id="the first of alternatives, without its subnet"),
        pytest.param("0f3a", None, id="a digest says nothing"),
    ],
)
def test_what_a_lane_asks_for(lane: str, expected: dict[str, int] | None) -> None:
    shape = shape_of(lane)
    assert (None if shape is None else shape.vector) == expected
