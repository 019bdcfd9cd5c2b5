"""The victims of a plan, with all of its preemptors known: none is stopped that nobody needs."""

from dataclasses import replace

import pytest
from trainmaster.core.jobs.instances import Vector
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.planning.superfluous_victims import least_stops
from trainmaster.core.policy import Preemption, PreemptionCost

from tests.builders import NOON, minutes, of, pool, running, snapshot, waiting
from tests.properties.carrying_out import preempted
from tests.unit.core.planning.plans import decided, quota, shape, told

FREE = Preemption(cost=PreemptionCost(enabled=False))
SMALL = running("small", minutes_ago=10)
BIG = running("big", n=4, minutes_ago=60)
TWO = (waiting("first", priority=9, minutes_ago=5), waiting("wide", priority=9, n=3))


def test_a_small_job_goes_on_if_the_large_one_that_must_stop_serves_both() -> None:
    world = snapshot(SMALL, BIG, *TWO)
    assert decided(world, replace(pool(5), preemption=FREE)) == [("preempt for", "wide", "big")]


def test_whoever_gets_what_others_leave_is_told_so() -> None:
    rules = replace(pool(5), preemption=FREE)
    message = told(snapshot(SMALL, BIG, *TWO), rules, "first")[1]
    assert message == "needs ml.a.xlarge=1, free ml.a.xlarge=0; the jobs that make room for it are stopping"
    assert told(snapshot(SMALL, BIG, *TWO), rules, "wide")[1].startswith("big is stopping to make room")


def test_nobody_is_spared_whose_instances_are_needed() -> None:
    wide = replace(TWO[1], shapes=(shape(4),))
    world = snapshot(SMALL, BIG, TWO[0], waiting("wide", priority=9, n=4))
    assert wide.name == "wide"
    assert decided(world, replace(pool(5), preemption=FREE)) == [
        ("preempt for", "first", "small"),
        ("preempt for", "wide", "big"),
    ]


def test_a_team_above_its_limit_needs_its_own_victims() -> None:
    """Another team's job that stops does not bring it below what it may borrow."""
    rules = replace(pool(5), preemption=FREE, quotas={"vision": quota(1, 0), "default": quota(4)})
    world = snapshot(
        replace(SMALL, team="vision"),
        BIG,
        waiting("first", team="vision", priority=9, minutes_ago=5),
        waiting("wide", priority=9, n=3),
    )
    assert decided(world, rules) == [("preempt for", "first", "small"), ("preempt for", "wide", "big")]


def test_a_single_victim_goes_on_whose_instances_others_leave() -> None:
    """The large job leaves one of four; with it one stop of two is enough for the first."""
    small = [running(name, minutes_ago=age) for name, age in (("s1", 10), ("s2", 20))]
    first = waiting("first", priority=9, n=2, minutes_ago=5)
    world = snapshot(*small, BIG, first, TWO[1])
    rules = replace(pool(6), preemption=FREE)
    assert decided(world, rules) == [("preempt for", "first", "s1"), ("preempt for", "wide", "big")]
    assert told(world, rules, "first")[1] == "s1 is stopping to make room for ml.a.xlarge=2"


def test_whoever_gets_a_part_of_others_asks_further_jobs_if_these_are_never_stopped() -> None:
    small = [running(name, minutes_ago=age) for name, age in (("s1", 10), ("s2", 20))]
    first = waiting("first", priority=9, n=2, minutes_ago=5)
    rules = replace(pool(6), preemption=FREE)
    decided_first = plan(snapshot(*small, BIG, first, TWO[1]), rules, now=NOON).actions[0]
    assert isinstance(decided_first, Preempt)
    died = preempted(decided_first, snapshot(*small, BIG, first), most=1)
    assert decided(died, rules)[-1] == ("preempt for", "first", "s2")


def preempts(job: WaitingJob, *victims: RunningJob, short: Vector) -> Preempt:
    return Preempt(job=job, shape=job.shapes[0], victims=victims, used={}, short=short)


@pytest.mark.parametrize(
    ("spare", "expected"),
    [
        pytest.param(0, [("first", ("a", "b")), ("wide", ("c",))], id="nothing is left"),
        pytest.param(1, [("first", ("a",)), ("wide", ("c",))], id="enough for one victim: b costs more"),
        pytest.param(2, [("wide", ("c",))], id="enough for a preemption: all of it"),
    ],
)
def test_what_is_left_over_spares_a_preemption_or_single_victims(
    spare: int, expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    a, b = (running(name, minutes_ago=age) for name, age in (("a", 10), ("b", 20)))
    c = running("c", n=3, minutes_ago=90)
    first = preempts(waiting("first", n=2), a, b, short=of(2))
    actions = [first, preempts(waiting("wide", n=3), c, short=of(3))]
    left = least_stops(actions, spare=of(spare), cost=lambda job: (NOON - job.claimed_at) / minutes(1))
    found = [
        (one.job.name, tuple(job.name for job in one.victims)) for one in left if isinstance(one, Preempt)
    ]
    assert found == expected
    lacking = {one.job.name: one.short for one in left if isinstance(one, Preempt)}
    assert lacking.get("first", of(2)) == of(2), "whatever the others do not free is asked of further jobs"


def test_who_needs_its_own_victims_keeps_them() -> None:
    first = preempts(waiting("first"), SMALL, short=of(1))
    actions = [first, preempts(waiting("wide", n=3), BIG, short=of(3))]
    assert least_stops(actions, spare=of(1), cost=lambda _: 0.0, kept={"first"}) == actions
