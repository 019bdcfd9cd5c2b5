"""Whom a waiting job may have stopped, and who of them is."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.preemption import cost_of_stop, work_lost
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy import PreemptionCost

from tests.builders import NOON, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, quota, shape, shared, told


def at(minute: float) -> datetime:
    return NOON + minutes(minute)


HIGH = waiting("high", priority=9)


def stopped(*jobs: RunningJob, by: Any = HIGH, **rules: Any) -> tuple[str, ...]:
    """Who is stopped in a pool that these jobs fill."""
    full = sum(sum(job.vector.values()) for job in jobs)
    steps = decided(snapshot(*jobs, by), full, **rules)
    assert len(steps) <= 1, steps
    return steps[0][2:] if steps else ()


# ---- who may be stopped for whom, in a pool with quotas

BOTH_ONE = {"vision": quota(1), "speech": quota(1)}


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param(
            (
                running("v1", team="vision", priority=5, minutes_ago=60),
                running("v2", team="vision", priority=5, minutes_ago=30),
                waiting("s1", team="speech"),
            ),
            [("preempt for", "s1", "v2")],
            id="a team takes its quota back from a borrower, whatever the priority",
        ),
        pytest.param(
            (
                running("v1", team="vision", priority=5, minutes_ago=60),
                running("x1", team="other", priority=999, minutes_ago=30),
                waiting("s1", team="speech"),
            ),
            [("preempt for", "s1", "x1")],
            id="a team without a quota borrows everything it has",
        ),
        pytest.param(
            (
                running("v1", team="vision"),
                running("s1", team="speech"),
                waiting("v2", team="vision", priority=0),
            ),
            [],
            id="a borrower takes nothing from those within their quotas",
        ),
        pytest.param(
            (
                running("v1", team="vision"),
                running("s1", team="speech", minutes_ago=60),
                waiting("v2", team="vision", priority=1),
            ),
            [("preempt for", "v2", "v1")],
            id="within a team priority decides: the higher is the one that is covered",
        ),
        pytest.param(
            (
                running("v1", team="vision", minutes_ago=60),
                running("v2", team="vision", priority=1),
                waiting("x", team="other", priority=5),
            ),
            [("preempt for", "x", "v1")],
            id="among borrowers priority decides across teams",
        ),
        pytest.param(
            (
                running("v1", team="vision", minutes_ago=60),
                running("s1", team="speech", minutes_ago=60),
                waiting("s2", team="speech", priority=5),
            ),
            [("preempt for", "s2", "s1")],
            id="within a team the one that came last is the borrower",
        ),
        pytest.param(
            (
                running("x", team="other", minutes_ago=5),
                running("s1", team="speech", minutes_ago=60),
                waiting("y", team="third", minutes_ago=9),
            ),
            [],
            id="among borrowers an equal priority takes nothing, however long it has waited",
        ),
    ],
)
def test_priority_and_reclaim(jobs: tuple[Any, ...], expected: list[tuple[str, ...]]) -> None:
    assert decided(snapshot(*jobs), shared(2, BOTH_ONE)) == expected


def test_across_teams_nobody_within_its_quota_is_stopped() -> None:
    """The quotas add up to more than a pool whose capacity was lowered."""
    world = snapshot(running("v1", team="vision"), waiting("s1", team="speech", minutes_ago=60))
    assert decided(world, shared(1, BOTH_ONE)) == []


def test_a_preemption_says_whether_it_takes_back_a_quota() -> None:
    live = (running("v1", team="vision", minutes_ago=60), running("v2", team="vision"))
    for job, reclaims in (
        (waiting("s1", team="speech"), True),
        (waiting("v3", team="vision", priority=5), False),
    ):
        (action,) = plan(snapshot(*live, job), shared(2, BOTH_ONE), now=NOON).actions
        assert isinstance(action, Preempt)
        assert action.reclaims is reclaims


@pytest.mark.parametrize(
    ("victim", "rules", "expected"),
    [
        pytest.param({}, {}, ("v",), id="a borrower"),
        pytest.param({"preemptible": False}, {}, (), id="it asked not to be"),
        pytest.param({"preemptions": 3}, {"max_per_job": 3}, ("v",), id="stopped often enough by priority"),
        pytest.param(
            {"training_since": at(-9)}, {"min_runtime": minutes(10)}, (), id="it has just begun to train"
        ),
        pytest.param(
            {"has_checkpoint": False}, {"needs_checkpoint": True}, (), id="it would lose everything"
        ),
        pytest.param({}, {"enabled": False}, (), id="preemption is switched off"),
    ],
)
def test_the_rules_of_preemption_protect_borrowers_too(
    victim: dict[str, Any], rules: dict[str, Any], expected: tuple[str, ...]
) -> None:
    world = snapshot(running("v", team="vision", **victim), waiting("s", team="speech"))
    wanted = [("preempt for", "s", *expected)] if expected else []
    assert decided(world, shared(1, {"speech": quota(1)}), **rules) == wanted


# ---- who of them

SEEN = at(-2)


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param(
            (
                running("low", priority=1, minutes_ago=500),
                running("high", priority=2, minutes_ago=1),
            ),
            ("low",),
            id="the lowest priority, whatever it loses",
        ),
        pytest.param(
            (running("long", minutes_ago=90), running("short", minutes_ago=10)),
            ("short",),
            id="of equal priority the one that loses less",
        ),
        pytest.param(
            (
                running("saved", minutes_ago=500, last_checkpoint=SEEN),
                running("young", minutes_ago=10),
            ),
            ("saved",),
            id="a fresh checkpoint leaves little to lose",
        ),
        pytest.param(
            (
                running("cheap", minutes_ago=30, cents_per_hour=100),
                running("dear", minutes_ago=20, cents_per_hour=200),
            ),
            ("cheap",),
            id="work is weighed by its price",
        ),
        pytest.param(
            (
                running("unpriced", minutes_ago=30, n=2),
                running("priced", minutes_ago=30, cents_per_hour=199, n=2),
            ),
            ("priced",),
            id="without a price an instance-hour counts as a dollar",
        ),
        pytest.param(
            (
                running("bare", minutes_ago=20, has_checkpoint=False),
                running("saving", minutes_ago=60, last_checkpoint=at(-30)),
            ),
            ("bare",),
            id="a job without checkpoints loses all it did, and no more",
        ),
        pytest.param(
            (
                running("bare", minutes_ago=31, has_checkpoint=False),
                running("saving", minutes_ago=60, last_checkpoint=at(-30)),
            ),
            ("saving",),
            id="a job without checkpoints is never preferred for having none",
        ),
        pytest.param(
            (
                running("bare", minutes_ago=9, has_checkpoint=False, last_checkpoint=at(-1)),
                running("saving", minutes_ago=8),
            ),
            ("saving",),
            id="a checkpoint that nothing resumes from saves nothing",
        ),
        pytest.param(
            (running("trains", minutes_ago=1), running("loads", minutes_ago=1, training_since=None)),
            ("loads",),
            id="nothing is lost before Training",
        ),
        pytest.param(
            (
                running("late", minutes_ago=10, training_since=SEEN),
                running("early", minutes_ago=99, training_since=SEEN),
            ),
            ("late",),
            id="of all else equal the one that came last",
        ),
    ],
)
def test_who_is_stopped_first(jobs: tuple[RunningJob, ...], expected: tuple[str, ...]) -> None:
    for order in (jobs, jobs[::-1]):
        one = waiting("new", priority=9, n=sum(jobs[0].vector.values()))
        assert stopped(*order, by=one, cost=PreemptionCost(enabled=False)) == expected
        if all(job.cents_per_hour is None for job in jobs):  # a price is in hours, not in dollars
            assert stopped(*order, by=one, cost=PreemptionCost(enabled=True)) == expected


def test_borrowers_go_before_those_within_their_quota() -> None:
    jobs = (
        running("own", team="vision", minutes_ago=30, priority=0),
        running("borrowed", team="vision", minutes_ago=20, priority=0, n=1),
    )
    new = waiting("new", team="vision", priority=5, n=1)
    assert decided(snapshot(*jobs, new), shared(2, {"vision": quota(2)})) == [
        ("preempt for", "new", "borrowed")
    ]


def test_of_equal_losses_the_one_whose_warm_pool_the_preemptor_can_use() -> None:
    jobs = (
        running("other", training_since=None, warm_key="x"),
        running("same", training_since=None, warm_key="k", minutes_ago=99, claimed_at=NOON - minutes(30)),
    )
    keyed = waiting("new", priority=9, shapes=(shape(key="k"),))
    assert stopped(*jobs, by=keyed) == ("same",)
    assert stopped(*jobs, by=waiting("new", priority=9)) == ("other",)


@pytest.mark.parametrize(
    ("jobs", "asked", "expected"),
    [
        pytest.param(
            (
                running("a", training_since=None),
                running("b", training_since=None),
                running("two", n=2, training_since=None),
            ),
            2,
            ("two",),
            id="of equal losses the fewest",
        ),
        pytest.param(
            (running("a", minutes_ago=5), running("b", minutes_ago=5), running("two", n=2, minutes_ago=9)),
            2,
            ("a", "b"),
            id="less work lost beats fewer victims",
        ),
        pytest.param(
            (running("a", minutes_ago=1), running("three", minutes_ago=2, n=3)),
            3,
            ("three",),
            id="whoever turns out not to be needed is spared",
        ),
        pytest.param(
            (running("a", vector=of(1)), running("b", vector=of(3, B))),
            1,
            ("a",),
            id="nobody is stopped for a type that is not asked for",
        ),
    ],
)
def test_sets_of_victims(jobs: tuple[RunningJob, ...], asked: int, expected: tuple[str, ...]) -> None:
    rules = pool(sum(job.vector.get(next(iter(of())), 0) for job in jobs), b=3)
    world = snapshot(*jobs, waiting("new", priority=9, n=asked))
    assert decided(world, rules) == [("preempt for", "new", *expected)]


def test_a_job_of_several_types_stops_what_each_type_needs() -> None:
    world = snapshot(
        running("a", vector=of(1)),
        running("b", vector=of(1, B)),
        waiting("new", priority=9, vector={**of(1), **of(1, B)}),
    )
    assert decided(world, pool(1, b=1)) == [("preempt for", "new", "a", "b")]


@pytest.mark.parametrize("asked", [24, 25, 30, 500])
def test_as_many_small_jobs_are_stopped_as_it_takes(asked: int) -> None:
    many = [running(f"r{number:03d}") for number in range(asked)]
    assert len(stopped(*many, by=waiting("new", priority=9, n=asked))) == asked
    assert stopped(*many, by=waiting("new", priority=9, n=asked + 1)) == ()


def test_nobody_is_stopped_twice_in_one_plan() -> None:
    live = (running("a"), running("b"))
    world = snapshot(*live, waiting("x", priority=9), waiting("y", priority=8))
    assert decided(world, 2) == [("preempt for", "x", "a"), ("preempt for", "y", "b")]


def test_the_room_of_one_preemption_is_not_promised_to_the_next() -> None:
    world = snapshot(running("a", n=2), waiting("x", priority=9), waiting("y", priority=8))
    assert decided(world, 2) == [("preempt for", "x", "a")]
    assert told(world, pool(2), "y") == (
        "capacity",
        "needs ml.a.xlarge=1, free ml.a.xlarge=0; the jobs that make room for it are stopping",
    )


def test_room_that_is_on_its_way_is_waited_for_and_nobody_else_is_stopped() -> None:
    going = running("going", state=JobState.STOPPING, stop_sent=True)
    world = snapshot(going, running("a"), running("b"), HIGH)
    assert decided(world, 3) == []
    assert told(world, pool(3), "high") == (
        "capacity",
        "needs ml.a.xlarge=1, free ml.a.xlarge=0; the jobs that make room for it are stopping",
    )


def test_a_preemption_counts_the_starts_before_it() -> None:
    first = waiting("first", priority=9, minutes_ago=5)
    world = snapshot(running("low", n=2), first, waiting("second", priority=9, n=2))
    *_, preempt = plan(world, pool(3), now=NOON).actions
    assert isinstance(preempt, Preempt)
    assert (preempt.job.name, preempt.used) == ("second", of(3))


@pytest.mark.parametrize(
    ("ends_by", "expected"),
    [
        pytest.param(at(5), (), id="enough is certain to be free in time"),
        pytest.param(at(5.1), ("r",), id="too late"),
        pytest.param(None, ("r",), id="nothing is certain"),
    ],
)
def test_preempt_delay(ends_by: datetime | None, expected: tuple[str, ...]) -> None:
    jobs = (running("r"), running("other", priority=99, ends_by=ends_by))
    assert stopped(*jobs, preempt_delay=minutes(5)) == expected


def test_without_a_delay_an_end_that_is_overdue_is_not_waited_for() -> None:
    assert stopped(running("r"), running("other", priority=99, ends_by=at(-1))) == ("r",)


@pytest.mark.parametrize(
    ("job", "lost"),
    [
        pytest.param(running("r", training_since=None), timedelta(), id="not yet training: nothing"),
        pytest.param(running("r", minutes_ago=7), minutes(7), id="no checkpoint seen: everything"),
        pytest.param(
            running("r", minutes_ago=7, last_checkpoint=at(-3)), minutes(3), id="since the checkpoint"
        ),
        pytest.param(
            running("r", minutes_ago=7, last_checkpoint=at(-99)),
            minutes(7),
            id="a checkpoint of an earlier attempt",
        ),
    ],
)
def test_the_work_that_a_stop_throws_away(job: RunningJob, lost: timedelta) -> None:
    assert work_lost(job, now=NOON) == lost


def test_what_a_stop_costs_is_in_cents() -> None:
    assert cost_of_stop(running("r", minutes_ago=30, cents_per_hour=300), now=NOON) == 150
    assert cost_of_stop(running("r", minutes_ago=30, n=4), now=NOON) == 200


def test_alternatives_are_tried_before_anybody_is_stopped_and_the_first_that_helps_is_taken() -> None:
    either: tuple[Shape, ...] = (shape(2), shape(1, B))
    new = waiting("new", priority=9, shapes=either)
    world = snapshot(running("a", vector=of(2)), running("b", vector=of(1, B)), new)
    assert decided(world, pool(2, b=1)) == [("preempt for", "new", "a")]
    protected = snapshot(running("a", vector=of(2), preemptible=False), running("b", vector=of(1, B)), new)
    assert decided(protected, pool(2, b=1)) == [("preempt for", "new", "b")]


VIP = running("vip", n=2, preemptible=False, ends_by=at(60))


@pytest.mark.parametrize(
    ("low", "wide", "runs", "expected"),
    [
        pytest.param(at(60), 3, 10, ("low",), id="gone again when the job ahead can start"),
        pytest.param(at(60), 3, 21, (), id="a minute too long: the job ahead counts on that room"),
        pytest.param(at(61), 2, 600, ("low",), id="room that the job ahead could not have had"),
        pytest.param(None, 3, 1, (), id="the job ahead has no time that is certain"),
    ],
)
def test_a_preemption_never_delays_the_job_ahead(
    low: datetime | None, wide: int, runs: int, expected: tuple[str, ...]
) -> None:
    ahead = waiting("ahead", priority=9, n=wide, minutes_ago=5)
    behind = waiting("behind", priority=5, runs_at_most=minutes(runs))
    steps = decided(snapshot(VIP, running("low", ends_by=low), ahead, behind), 3)
    assert steps == ([("preempt for", "behind", *expected)] if expected else [])
