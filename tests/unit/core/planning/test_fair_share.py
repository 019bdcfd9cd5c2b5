"""Who goes first where teams have shares."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.planning.fair_share import MOST, explained, points, ranked, team_shares
from trainmaster.core.planning.past_use import HALF_LIFE, UsePeriod, UseSums
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import FairShare, Order, PoolPolicy

from tests.builders import NOON, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided

BY_SHARE = FairShare(weight=10)


def used(hours: float) -> UseSums:
    """So many instance-hours as of now."""
    period = UsePeriod.at(NOON, HALF_LIFE)
    return {period: round(hours * 3_600_000 * 2 ** ((NOON - period.begin) / HALF_LIFE))}


def rules(capacity: int = 2, **fields: Any) -> PoolPolicy:
    return replace(pool(capacity), order=Order(fair_share=replace(BY_SHARE, **fields)))


def order_of(world: Snapshot, policy: PoolPolicy) -> list[str]:
    return [job.name for job in sorted(ranked(world, policy, now=NOON).waiting, key=lambda one: one.rank)]


# ---- points


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param(0, 30, id="who has used nothing gains three times the weight"),
        pytest.param(0.125, 10, id="half of its share: the weight"),
        pytest.param(0.25, 0, id="its share: nothing"),
        pytest.param(0.5, -10, id="twice its share: the weight is lost"),
        pytest.param(1, -18, id="and four times it, less than twice as much again"),
    ],
)
def test_points(part: float, expected: float) -> None:
    assert points(10, share=0.25, used=part) == pytest.approx(expected)


parts = st.floats(0, 1, allow_subnormal=False)


@given(st.floats(1e-6, 1), parts, parts, st.integers(0, 1000))
def test_points_fall_as_use_rises_and_have_a_bound(
    share: float, one: float, other: float, weight: int
) -> None:
    less, more = sorted((one, other))
    gained, lost = points(weight, share=share, used=less), points(weight, share=share, used=more)
    assert MOST * weight >= gained >= lost >= -MOST * weight


def test_equal_shares_unless_written() -> None:
    found = team_shares(
        FairShare(weight=10, shares={"atlas": 2}),
        {"atlas", "vision", "speech"},
        past={"atlas": used(30), "vision": used(60), "speech": used(10)},
        running=(),
        now=NOON,
    )
    assert {name: (one.share, round(one.times, 2)) for name, one in found.items()} == {
        "atlas": (0.5, 0.6),
        "vision": (0.25, 2.4),
        "speech": (0.25, 0.4),
    }


def test_a_team_without_jobs_in_the_pool_has_no_part_in_it() -> None:
    found = team_shares(BY_SHARE, {"atlas"}, past={"gone": used(1000)}, running=(), now=NOON)
    assert {name: one.points for name, one in found.items()} == {"atlas": 0}


def test_where_nobody_has_used_anything_nobody_is_moved() -> None:
    found = team_shares(BY_SHARE, {"atlas", "vision"}, past={}, running=(), now=NOON)
    assert [one.points for one in found.values()] == [0, 0]


def test_a_job_counts_while_it_runs() -> None:
    live = running("live", team="atlas", minutes_ago=60, n=2)
    found = team_shares(BY_SHARE, {"vision"}, past={}, running=[live], now=NOON)
    assert found["atlas"].hours == pytest.approx(2, rel=0.003)
    assert found["atlas"].points == pytest.approx(-10)
    assert found["vision"].points == 30


# ---- the order


def test_a_team_over_its_share_goes_later() -> None:
    world = snapshot(
        waiting("first", team="atlas", minutes_ago=60),
        waiting("second", team="vision", minutes_ago=30),
        past_use={"atlas": used(90), "vision": used(10)},
    )
    assert order_of(world, rules()) == ["second", "first"]
    assert decided(world, rules(1)) == [("start", "second")]


def test_within_a_team_nothing_changes() -> None:
    jobs = [waiting(f"job{n}", team="atlas", minutes_ago=n, priority=n % 3) for n in range(9)]
    world = snapshot(*jobs, waiting("other", team="vision"), past_use={"atlas": used(90)})
    own = [name for name in order_of(world, rules()) if name != "other"]
    assert own == [job.name for job in sorted(jobs, key=lambda one: (one.score, one.name))]


def test_more_priority_than_the_points_goes_first_all_the_same() -> None:
    """At twice the share 10 points are lost; a team that has used nothing gains 30."""
    world = snapshot(
        waiting("urgent", team="atlas", priority=41),
        waiting("plain", team="vision"),
        past_use={"atlas": used(90)},
    )
    assert order_of(world, rules()) == ["urgent", "plain"]


def test_age_still_counts() -> None:
    day = 24 * 60
    world = snapshot(
        waiting("old", team="atlas", minutes_ago=41 * day),
        waiting("new", team="vision"),
        past_use={"atlas": used(90)},
    )
    assert order_of(world, rules()) == ["old", "new"]


def test_without_weight_the_snapshot_stays_the_very_same() -> None:
    world = snapshot(waiting("job", team="atlas"), past_use={"atlas": used(90)})
    assert ranked(world, pool(), now=NOON) is world


def test_a_running_job_ranks_with_its_teams_points_as_well() -> None:
    """By score the victim is ahead of who preempts; its team's use puts it behind."""
    live = running("live", team="atlas", minutes_ago=30 * 60, n=2, priority=0)
    asks = waiting("asks", team="vision", priority=1)
    world = snapshot(live, asks)
    assert decided(world) == []
    assert decided(replace(world, past_use={}), rules()) == [("preempt for", "asks", "live")]


def test_equal_priority_never_preempts_whatever_has_been_used() -> None:
    live = running("live", team="atlas", n=2)
    world = snapshot(live, waiting("asks", team="vision"), past_use={"atlas": used(1000)})
    assert decided(world, rules()) == []


def test_what_is_stored_of_a_job_stays() -> None:
    job = waiting("job", team="atlas")
    world = snapshot(job, waiting("other", team="vision"), past_use={"atlas": used(90)})
    (started,) = (one for one in plan(world, rules(1), now=NOON).actions)
    assert started.job.name == "other"  # type: ignore[union-attr]  # a start
    assert started.job.score == waiting("other").score  # type: ignore[union-attr]
    assert job.share_ms is None


# ---- in words


def test_what_people_read() -> None:
    found = team_shares(
        BY_SHARE, {"atlas", "vision"}, past={"atlas": used(75), "vision": used(25)}, running=(), now=NOON
    )
    assert [explained(one, BY_SHARE) for one in found.values()] == [
        "atlas has used 1.5 times its share of the last 7d: its jobs count 6 points less",
        "vision has used 0.5 times its share of the last 7d: its jobs count 10 points more",
    ]


def test_a_team_at_its_share_reads_nothing() -> None:
    found = team_shares(BY_SHARE, {"atlas"}, past={}, running=(), now=NOON)
    assert explained(found["atlas"], BY_SHARE) is None


def test_a_year_of_memory_reads_as_written() -> None:
    long = FairShare(weight=10, half_life=timedelta(days=365))
    found = team_shares(long, {"atlas", "vision"}, past={"atlas": used(1)}, running=(), now=NOON)
    assert explained(found["vision"], long) == (
        "vision has used 0.0 times its share of the last 365d: its jobs count 30 points more"
    )
