"""Plans with elastic jobs: starts at a width, shrinks for others, and growths into idle room."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.elastic_state import TrainingProgress
from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.actions import Grow, Plan, Preempt, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import (
    ExpectedRun,
    PreemptionReservation,
    RunningJob,
    Snapshot,
    WaitingJob,
)
from trainmaster.core.planning.start_records import StartLesson, StartRecords
from trainmaster.core.policy import PoolPolicy, Preemption, Quota
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.plan_windows import PlanCount

from tests.builders import NOON, A, minutes, of, running, snapshot, waiting

ONE_TO_FOUR = Widths(counts=(1, 2, 3, 4))
TWO_TO_EIGHT = Widths(counts=(2, 4, 6, 8))


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


def elastic_waiting(name: str = "elastic", widths: Widths = ONE_TO_FOUR, **fields: Any) -> WaitingJob:
    shapes = tuple(Shape(vector=of(count)) for count in reversed(widths.counts))
    return waiting(name, shapes=shapes, widths=widths, **fields)


def elastic_running(
    name: str = "elastic", n: int = 4, widths: Widths = ONE_TO_FOUR, **fields: Any
) -> RunningJob:
    values: dict[str, Any] = {"minutes_ago": 60, "expected": ExpectedRun(at_most=hours(10))}
    return running(name, n=n, widths=widths, **values | fields)


def pool(capacity: int = 4, **fields: Any) -> PoolPolicy:
    return PoolPolicy(name="main", capacity={A: capacity}, **fields)


def planned(world: Snapshot, policy: PoolPolicy | None = None) -> Plan:
    return plan(world, policy or pool(), now=NOON)


def of_kind(kind: type[Any], decided: Plan) -> list[Any]:
    return [action for action in decided.actions if isinstance(action, kind)]


@pytest.mark.parametrize(
    ("used", "width"),
    [(0, 4), (1, 3), (3, 1)],
    ids=["the largest", "what is free", "its least"],
)
def test_an_elastic_job_starts_at_the_largest_width_that_fits(used: int, width: int) -> None:
    others = [running("other", n=used)] if used else []
    (start,) = of_kind(Start, planned(snapshot(*others, elastic_waiting())))
    assert start.shape.vector == of(width)


def test_it_waits_for_its_least_width_only() -> None:
    long, short = running("long", n=3), running("short", n=1)
    world = snapshot(
        replace(long, expected=ExpectedRun(ends_by=NOON + hours(9))),
        replace(short, expected=ExpectedRun(ends_by=NOON + hours(1))),
        elastic_waiting(minutes_ago=9),
    )
    decided = planned(world)
    assert decided.actions == ()
    assert f"{A}=1" in decided.reasons["elastic"].message


def test_an_urgent_elastic_job_stops_others_for_its_least_width_only() -> None:
    low = [running(f"low{number}", priority=0) for number in range(4)]
    (preemption,) = of_kind(Preempt, planned(snapshot(*low, elastic_waiting(priority=9))))
    assert preemption.shape.vector == of(1)
    assert len(preemption.victims) == 1


def test_an_urgent_job_takes_only_what_it_needs_of_an_elastic_one() -> None:
    urgent = waiting("urgent", priority=9, n=2)
    (preemption,) = of_kind(Preempt, planned(snapshot(elastic_running(), urgent)))
    assert [victim.name for victim in preemption.victims] == ["elastic"]
    assert preemption.kept == {"elastic": of(2)}
    assert preemption.freed == of(2)


def test_it_keeps_only_one_of_its_widths() -> None:
    urgent = waiting("urgent", priority=9, n=1)
    job = elastic_running(n=8, widths=TWO_TO_EIGHT)
    (preemption,) = of_kind(Preempt, planned(snapshot(job, urgent), pool(8)))
    assert preemption.kept == {"elastic": of(6)}


def test_it_stops_as_a_whole_where_less_than_its_least_width_is_left() -> None:
    urgent = waiting("urgent", priority=9, n=4)
    (preemption,) = of_kind(Preempt, planned(snapshot(elastic_running(), urgent)))
    assert preemption.kept == {}


def test_among_equals_giving_up_some_instances_goes_before_a_stop() -> None:
    rigid = running("rigid", n=4, minutes_ago=60)
    urgent = waiting("urgent", priority=9, n=2)
    world = snapshot(rigid, elastic_running(), urgent)
    (preemption,) = of_kind(Preempt, planned(world, pool(8, preemption=Preemption())))
    assert [victim.name for victim in preemption.victims] == ["elastic"]


def stopping(**fields: Any) -> RunningJob:
    return replace(
        elastic_running(**fields), state=JobState.PREEMPTING, stop_sent=True, preempted_for="urgent"
    )


def test_what_it_keeps_is_held_while_it_stops_though_it_does_not_wait_yet() -> None:
    world = replace(
        snapshot(stopping(), waiting("urgent", priority=9, n=2), waiting("other", n=1)),
        holds=(
            PreemptionReservation(preemptor="urgent", vector=of(2)),
            PreemptionReservation(preemptor="elastic", vector=of(2)),
        ),
        gone_preemptors=frozenset({"elastic"}),
    )
    assert planned(world).actions == ()


def test_once_stopped_both_start_in_what_is_held_for_them() -> None:
    world = replace(
        snapshot(
            elastic_waiting(state=JobState.PREEMPTED, minutes_ago=90),
            waiting("other", n=1, priority=5),
            waiting("urgent", priority=9, n=2),
        ),
        holds=(
            PreemptionReservation(preemptor="urgent", vector=of(2)),
            PreemptionReservation(preemptor="elastic", vector=of(2)),
        ),
    )
    starts = of_kind(Start, planned(world))
    assert {start.job.name: start.shape.vector for start in starts} == {"urgent": of(2), "elastic": of(2)}
    assert all(start.ends_hold for start in starts)


def test_after_its_preemptor_has_gone_it_starts_at_the_width_that_now_fits() -> None:
    world = replace(
        snapshot(elastic_waiting(state=JobState.PREEMPTED)),
        holds=(
            PreemptionReservation(preemptor="urgent", vector=of(2)),
            PreemptionReservation(preemptor="elastic", vector=of(2)),
        ),
        gone_preemptors=frozenset({"urgent"}),
    )
    (start,) = of_kind(Start, planned(world))
    assert start.shape.vector == of(4)


def test_it_grows_into_room_that_nobody_wants() -> None:
    (growth,) = of_kind(Grow, planned(snapshot(elastic_running(n=2))))
    assert (growth.width, growth.used) == (4, of(2))
    assert growth.room == of(4)


def shortly(left: timedelta) -> dict[str, Any]:
    """What is left of its run time, of a job that has trained for an hour."""
    return {"expected": ExpectedRun(at_most=hours(1) + left)}


NO_GROWTHS: dict[str, tuple[RunningJob, tuple[WaitingJob | RunningJob, ...], dict[str, Any]]] = {
    "another job waits for the type": (elastic_running(n=2), (waiting("wide", n=3),), {}),
    "it changed its width within the snooze": (
        elastic_running(n=2, resized_at=NOON - minutes(29)),
        (),
        {},
    ),
    "it saves too little": (elastic_running(n=2, **shortly(minutes(30))), (), {}),
    "it does not train yet": (elastic_running(n=2, training_since=None), (), {}),
    "it has no checkpoint": (elastic_running(n=2, has_checkpoint=False), (), {}),
    "it has its largest width": (elastic_running(n=4), (), {"capacity": 8}),
    "nothing is free": (elastic_running(n=2), (running("other", n=2),), {}),
    "the account refused it as much": (elastic_running(n=2, account_width=2), (), {}),
    "its team may not borrow more": (
        elastic_running(n=2),
        (),
        {"quotas": {"default": Quota(nominal={A: 2}, borrowing_limit={A: 0})}},
    ),
}


@pytest.mark.parametrize("case", NO_GROWTHS)
def test_it_does_not_grow_where(case: str) -> None:
    job, others, fields = NO_GROWTHS[case]
    decided = planned(snapshot(job, *others), pool(**fields))
    assert of_kind(Grow, decided) == []
    assert decided.widths["elastic"]


def change(after: timedelta, capacity: int, **fields: Any) -> CapacityFrom:
    """The capacity of the pool from `after` from now on."""
    return CapacityFrom(
        at=NOON + after, capacity={A: capacity}, **({"stops": frozenset({A}), "reserved": {}} | fields)
    )


TAKEN_BACK = {
    "the calendar drains it": change(minutes(1), 2),
    "the window ends": change(minutes(1), 0),
    "a team has it reserved": change(minutes(1), 4, stops=frozenset(), reserved={"vision": {A: 2}}),
}


@pytest.mark.parametrize("case", TAKEN_BACK)
def test_R6_it_does_not_grow_into_room_that_is_soon_taken_back(case: str) -> None:
    decided = planned(snapshot(elastic_running(n=2)), pool(ahead=(TAKEN_BACK[case],)))
    assert of_kind(Grow, decided) == []


def test_R6_it_grows_into_room_that_is_taken_back_after_its_end() -> None:
    after_its_end = change(hours(100), 2)
    assert of_kind(Grow, planned(snapshot(elastic_running(n=2)), pool(ahead=(after_its_end,))))


def short_of(capacity: Capacity, *, ago: timedelta, bad: int = 1) -> StartRecords:
    """Starts of a type that ended for want of capacity."""
    records = StartRecords()
    for _ in range(bad):
        records = records.after(StartLesson(vector={capacity: 1}, trained=False, at=NOON - ago))
    return records


PLAN = Capacity.of_plan(A, "spring")


@pytest.mark.parametrize(
    ("capacity", "scarce", "ago", "grows"),
    [
        (Capacity(A), Capacity(A), hours(23), False),
        (Capacity(A), Capacity(A), hours(25), True),
        (Capacity(A), Capacity("ml.p5.48xlarge"), hours(1), True),
        (PLAN, PLAN, hours(1), True),
    ],
    ids=["within the day", "after a day", "another type", "a training plan"],
)
def test_nothing_grows_for_a_day_where_aws_had_no_instances(
    capacity: Capacity, scarce: Capacity, ago: timedelta, *, grows: bool
) -> None:
    job = replace(elastic_running(n=2), vector={capacity: 2})
    world = replace(snapshot(job), start_records=short_of(scarce, ago=ago))
    decided = planned(
        world,
        PoolPolicy(name="main", capacity={capacity: 4}, plan_counts={PLAN: PlanCount(usable=4, kept=4)}),
    )
    assert bool(of_kind(Grow, decided)) is grows
    assert ("as AWS had no" in decided.widths["elastic"]) is not grows


@pytest.mark.parametrize(("bad", "grows"), [(1, True), (30, False)])
def test_the_chance_that_a_restart_gets_no_instances_is_in_the_price_of_a_growth(
    bad: int, *, grows: bool
) -> None:
    job = elastic_running(n=2, **shortly(hours(4)))
    world = replace(snapshot(job), start_records=short_of(Capacity(A), ago=hours(25), bad=bad))
    assert bool(of_kind(Grow, planned(world))) is grows


def test_a_pass_grows_one_job_at_most() -> None:
    jobs = [elastic_running(f"elastic{number}", n=1, minutes_ago=70 - number) for number in range(3)]
    decided = planned(snapshot(*jobs), pool(12))
    assert [growth.job.name for growth in of_kind(Grow, decided)] == ["elastic0"]


def test_its_words_say_what_a_growth_would_save_and_need() -> None:
    progress = TrainingProgress(at=NOON, step=0, steps=10_800, speeds={"4": 1000, "8": 1175})
    job = elastic_running(n=4, widths=Widths(counts=(2, 4, 8)), minutes_ago=0, progress=progress)
    decided = planned(snapshot(job, running("other", n=4)), pool(8))
    assert decided.widths["elastic"] == (
        "4 of 8 instances; growing to 8 would save 24 min of 3 h:"
        f" needs 4 more {Capacity(A)} that are free and stay so"
    )


def test_a_nominal_quota_covers_the_least_width_and_what_is_beyond_is_taken_back() -> None:
    quotas = {"default": Quota(nominal={A: 2}), "vision": Quota(nominal={A: 2})}
    job = elastic_running(widths=Widths(counts=(2, 3, 4)))
    world = snapshot(job, waiting("own", n=1, team="vision"))
    (preemption,) = of_kind(Preempt, planned(world, pool(quotas=quotas)))
    assert preemption.kept == {"elastic": of(3)}
    assert preemption.reclaims
