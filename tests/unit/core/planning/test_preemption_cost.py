"""What a preemption is worth, in numbers that can be worked out by hand."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy, PreemptionCost

from tests.builders import NOON, minutes, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, quota, shared, told

COST = PreemptionCost(enabled=True)


def at(minute: float) -> Any:
    return NOON + minutes(minute)


def stopped(*live: RunningJob, by: WaitingJob, cost: PreemptionCost = COST, **rules: Any) -> tuple[str, ...]:
    held = sum(sum(job.vector.values()) for job in live)
    steps = decided(snapshot(*live, by), held, cost=cost, **rules)
    return tuple(name for step in steps for name in step[2:])


def with_cost(rules: PoolPolicy, **cost: Any) -> PoolPolicy:
    return replace(rules, preemption=replace(rules.preemption, cost=PreemptionCost(enabled=True, **cost)))


# An equal priority doubles: 100 points of gap make an hour of the preemptor count 3 x 2 hours of the victim.
# The victim trains an hour without a checkpoint and started at once: 3 x 1 / (1 + 1/24) = 2.88 hours lost,
# 0.117 for its restart (5 minutes and 2 to stop), and the wait that the preemptor has now.


@pytest.mark.parametrize(
    ("victim", "preemptor", "expected"),
    [
        pytest.param(
            running("r", minutes_ago=60, ends_by=at(36.5)),
            waiting("w", priority=100),
            ("r",),
            id="6 x 0.61 h spared, 2.997 + 0.61 h lost",
        ),
        pytest.param(
            running("r", minutes_ago=60, ends_by=at(35)),
            waiting("w", priority=100),
            (),
            id="6 x 0.583 h spared, 2.997 + 0.583 h lost",
        ),
        pytest.param(
            running("r", minutes_ago=60, ends_by=at(35)),
            waiting("w", priority=100, minutes_ago=2),
            ("r",),
            id="the wait so far counts too",
        ),
        pytest.param(
            running("r", minutes_ago=60, ends_by=at(35)),
            waiting("w", priority=200),
            ("r",),
            id="a more urgent class",
        ),
        pytest.param(
            running("r", minutes_ago=60, last_checkpoint=at(-5), ends_by=at(5)),
            waiting("w", priority=100),
            ("r",),
            id="a job that has just saved loses little",
        ),
        pytest.param(
            running("r", minutes_ago=60, ends_by=at(35), n=2),
            waiting("w", priority=150),
            (),
            id="each of its instances loses the work",
        ),
        pytest.param(
            running("r", minutes_ago=60, ends_by=at(36), n=2),
            waiting("w", priority=100, n=2, minutes_ago=2),
            ("r",),
            id="and each of the preemptor's waits",
        ),
        pytest.param(
            running("r", minutes_ago=600, ends_by=at(35)),
            waiting("w", priority=300),
            (),
            id="ten hours of work for 24 x 0.58 h",
        ),
        pytest.param(
            running("r", minutes_ago=20, training_since=None, ends_by=at(35)),
            waiting("w", priority=1),
            ("r",),
            id="before Training there is little to lose",
        ),
    ],
)
def test_a_preemption_is_carried_out_if_it_spares_more_than_it_costs(
    victim: RunningJob, preemptor: WaitingJob, expected: tuple[str, ...]
) -> None:
    assert stopped(victim, by=preemptor) == expected


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        pytest.param({}, (), id="as they are"),
        pytest.param({"double_every": 50}, ("r",), id="a point of priority counts for more"),
        pytest.param({"lost_work": 1}, ("r",), id="lost work counts for less"),
        pytest.param({"unsaved": minutes(30)}, ("r",), id="unsaved work counts for less"),
        pytest.param({"restart": minutes(0)}, ("r",), id="a restart costs nothing"),
    ],
)
def test_each_key_of_the_price(cost: dict[str, Any], expected: tuple[str, ...]) -> None:
    victim = running("r", minutes_ago=60, ends_by=at(35.5))
    assert (
        stopped(victim, by=waiting("w", priority=100), cost=PreemptionCost(enabled=True, **cost)) == expected
    )


def test_without_a_price_any_outranked_job_is_stopped() -> None:
    victim, preemptor = running("r", minutes_ago=600, ends_by=at(1)), waiting("w", priority=1)
    assert stopped(victim, by=preemptor) == ()
    assert stopped(victim, by=preemptor, cost=PreemptionCost()) == ("r",)


def test_a_slow_start_is_paid_for_again() -> None:
    fields: dict[str, Any] = {"minutes_ago": 80, "last_checkpoint": at(0), "ends_by": at(6)}
    quick, slow = (running("r", training_since=at(-80 + start), **fields) for start in (1, 70))
    by = waiting("w", priority=100)
    assert stopped(quick, by=by) == ("r",)
    assert stopped(slow, by=by) == ()


# ---- whom


def test_with_a_price_the_cheapest_is_stopped_whatever_its_priority() -> None:
    """An hour of unsaved work of a low job counts for more than a minute of one twice as important."""
    low = running("low", minutes_ago=60, ends_by=at(30))
    normal = running("normal", priority=100, minutes_ago=60, last_checkpoint=at(-1), ends_by=at(30))
    by = waiting("high", priority=200, minutes_ago=120)
    assert stopped(low, normal, by=by) == ("normal",)
    assert stopped(low, normal, by=by, cost=PreemptionCost()) == ("low",)


def test_of_equal_losses_the_lower_priority() -> None:
    low, normal = (
        running(name, priority=priority, last_checkpoint=at(-1))
        for name, priority in (("low", 0), ("normal", 100))
    )
    assert stopped(low, normal, by=waiting("high", priority=200)) == ("low",)


def test_the_bounds_hold_whatever_it_would_be_worth() -> None:
    by = waiting("w", priority=900, minutes_ago=600)
    assert stopped(running("r", priority=900), by=by) == ()
    assert stopped(running("r", preemptible=False), by=by) == ()
    assert stopped(running("r", has_checkpoint=False), by=by, needs_checkpoint=True) == ()
    assert stopped(running("r", preemptions=3), by=by) == ()
    assert stopped(running("r", minutes_ago=5), by=by, min_runtime=minutes(10)) == ()


# ---- expected waits


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param({"ends_by": at(10)}, (), id="the other is certain to end soon"),
        pytest.param({"predicted": minutes(70)}, (), id="the other is expected to end soon"),
        pytest.param({"predicted": minutes(300)}, ("r",), id="the other is expected to train for long"),
        pytest.param({"predicted": minutes(50)}, ("r",), id="it outlived that: as long again is expected"),
        pytest.param({}, ("r",), id="nothing is known of it"),
    ],
)
def test_what_frees_itself_soon_is_waited_for(other: dict[str, Any], expected: tuple[str, ...]) -> None:
    live = (
        running("r", minutes_ago=60, last_checkpoint=at(-20)),
        running("other", priority=999, minutes_ago=60, **other),
    )
    assert stopped(*live, by=waiting("w", priority=100)) == expected


def test_what_those_ahead_take_of_what_comes_free_is_not_there_for_those_behind() -> None:
    live = (
        running("r", minutes_ago=90, ends_by=at(300)),
        running("soon", priority=999, ends_by=at(10), n=2),
        running("late", priority=999, ends_by=at(200), n=2),
    )
    behind = waiting("behind", priority=100)
    assert decided(snapshot(*live, behind), with_cost(pool(5))) == []
    ahead = waiting("ahead", priority=150, n=3)
    assert decided(snapshot(*live, ahead, behind), with_cost(pool(5))) == [("preempt for", "behind", "r")]


# ---- reasons


def test_the_reason_says_what_it_would_cost_and_when_it_is_worth_it() -> None:
    victim = running("b", minutes_ago=126, ends_by=at(24))
    world = snapshot(victim, waiting("w", priority=100))
    code, message = told(world, with_cost(pool(1)), "w")
    assert code == "capacity"
    assert message == (
        "needs ml.a.xlarge=1, free ml.a.xlarge=0; stopping b would lose 2.1 h of work for 0.4 h of your wait:"
        " not worth it until 2026-11-02 13:39 UTC"
    )


def test_the_reason_names_no_job_of_another_team_and_counts_the_others() -> None:
    live = (
        running("a", minutes_ago=120, team="vision", ends_by=at(3)),
        running("b", minutes_ago=120, ends_by=at(3)),
    )
    world = snapshot(*live, waiting("w", priority=10, n=2))
    _, message = told(world, with_cost(pool(2)), "w")
    assert "; stopping a job of team vision and 1 more would lose 4.0 h of work for 0.1 h" in message


def test_it_is_worth_it_at_the_minute_that_was_said_and_not_before() -> None:
    victim = running("b", minutes_ago=126, ends_by=at(24))
    world, rules = snapshot(victim, waiting("w", priority=100)), with_cost(pool(1))
    said = at(99)

    def stops(when: Any) -> bool:
        return any(isinstance(one, Preempt) for one in plan(world, rules, now=when).actions)

    assert not stops(said - minutes(2))
    assert stops(said)


def test_those_behind_with_the_same_wish_do_not_overtake_the_one_that_was_refused() -> None:
    victim = running("r", minutes_ago=600, ends_by=at(1))
    world = snapshot(victim, *(waiting(f"w{n}", priority=100, minutes_ago=5 - n) for n in range(3)))
    assert decided(world, with_cost(pool(1))) == []
    assert "not worth it" in told(world, with_cost(pool(1)), "w0")[1]
    assert told(world, with_cost(pool(1)), "w1")[0] == "ahead"


# ---- quotas


def test_who_takes_back_its_quota_weighs_no_less_than_the_borrower() -> None:
    """Three times as much, whatever its priority: in time it is always worth it."""
    borrower = running("v", team="vision", priority=900, minutes_ago=60, ends_by=at(600))
    rules = with_cost(shared(1, {"speech": quota(1)}))
    asks = waiting("s", team="speech", minutes_ago=0)
    assert decided(snapshot(borrower, asks), rules) == [("preempt for", "s", "v")]
    soon = running("v", team="vision", priority=900, minutes_ago=60, ends_by=at(30))
    assert decided(snapshot(soon, asks), rules) == []
    patient = waiting("s", team="speech", minutes_ago=60)
    assert decided(snapshot(soon, patient), rules) == [("preempt for", "s", "v")]


def test_the_four_jobs_of_the_readme_go_on_as_without_a_price() -> None:
    """Small priorities, and nothing is known of anybody: the most urgent job preempts at once."""
    live = (running("job1", priority=1, minutes_ago=20), running("job2", priority=2, minutes_ago=20))
    world = snapshot(*live, waiting("job3", priority=1), waiting("job4", priority=3))
    assert decided(world, with_cost(pool(2))) == [("preempt for", "job4", "job1")]


def test_a_second_preemptor_does_not_count_on_what_the_first_is_given() -> None:
    live = (
        running("soon", minutes_ago=60, last_checkpoint=at(0), ends_by=at(12)),
        running("late", minutes_ago=60, last_checkpoint=at(-5), ends_by=at(600)),
    )
    both: Snapshot = snapshot(*live, waiting("x", priority=200, minutes_ago=9), waiting("y", priority=200))
    steps = decided(both, with_cost(pool(2)))
    assert steps == [("preempt for", "x", "soon"), ("preempt for", "y", "late")]


def test_a_wait_is_the_time_that_a_job_did_not_train() -> None:
    victim = running("r", minutes_ago=60, ends_by=at(30))
    fresh = waiting("w", priority=100, minutes_ago=600, trained=timedelta(minutes=599))
    assert stopped(victim, by=fresh) == ()
    assert stopped(victim, by=waiting("w", priority=100, minutes_ago=600)) == ("r",)
