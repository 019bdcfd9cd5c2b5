"""Warm pools, learned limits and money."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.costs.ledger import Cause, MonthAccount, PreemptionEntry, UsageLine
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.planning.warm_history import LATEST_STARTS, LATEST_STARTUPS
from trainmaster.core.records import WriteCondition

from tests.builders import NOON, A, B, claimed, minutes, of, waiting
from tests.integration.ports.plane import Plane, billed, ended, warm

S = JobState


def test_an_end_moves_what_sagemaker_kept_from_used_towarm(plane: Plane) -> None:
    one = plane.running("a", vector=of(2))
    over = replace(ended(one), leaves_warm=warm("a", vector=of(2)))
    plane.store.commit([over], at=NOON)
    snapshot = plane.snapshot()
    assert (snapshot.used, snapshot.warm, snapshot.warm_pools) == ({}, of(2), (warm("a", vector=of(2)),))
    state = plane.reader.pool_state("main")
    assert (state.warm, state.warm_pools) == (of(2), (warm("a", vector=of(2)),))


def test_starts_and_ends_of_a_warm_key_are_recorded_the_newest_first(plane: Plane) -> None:
    kept: dict[str, Any] = {"shape": Shape(vector=of(1), warm_key="k"), "keep_alive": minutes(10)}
    for number in range(LATEST_STARTS + 2):
        name, at = f"job-{number}", NOON + minutes(10 * number)
        one = plane.submitted(name, submitted_at=at - minutes(1))
        (started,) = plane.store.commit([Change(before=one, after=claimed(one, now=at, **kept))], at=at)
        live = plane.change(started, steps.recorded(started, training_job_arn="arn:x", now=at))
        left = warm(name, since=at + minutes(5), expires_at=at + minutes(15))
        trains = {"training_since": at + minutes(3), "trained": minutes(1), "instance_seconds": 300}
        over = billed(live, "Completed", **trains, warm_start=number % 2 == 1 or None)
        plane.store.commit([replace(over, leaves_warm=left)], at=at + minutes(5))
    history = plane.snapshot().warm_histories["k"]
    last = NOON + minutes(10 * (LATEST_STARTS + 1))
    starts = [last - minutes(10 * number) for number in range(LATEST_STARTS)]
    assert [start.at for start in history.starts] == starts
    assert [start.ready for start in history.starts] == [at - minutes(1) for at in starts]
    assert list(history.ends) == [at + minutes(5) for at in starts]
    assert (history.cold, history.warm) == ((minutes(3),) * LATEST_STARTUPS,) * 2
    assert [start.team for start in history.starts] == ["default"] * LATEST_STARTS
    assert history.job == f"job-{LATEST_STARTS + 1}"
    assert plane.reader.pool_state("main").warm_histories == {"k": history}
    assert plane.reader.warm_histories("main") == {"k": history}
    assert plane.reader.warm_histories("other") == {}


def test_starts_of_one_commit_are_all_recorded(plane: Plane) -> None:
    kept: dict[str, Any] = {"shape": Shape(vector=of(1), warm_key="k"), "keep_alive": minutes(10)}
    first, second, third = (plane.submitted(name) for name in ("a", "b", "c"))
    plane.store.commit([Change(before=first, after=claimed(first, **kept))], at=NOON)
    together = [Change(before=job, after=claimed(job, **kept)) for job in (second, third)]
    plane.store.commit(together, at=NOON + minutes(1))
    plane.store.change_warm("main", None, warm("old"), at=NOON)
    history = plane.snapshot().warm_histories["k"]
    assert [start.at for start in history.starts] == [NOON + minutes(1), NOON + minutes(1), NOON]
    assert history.job == "c"


def test_what_was_never_kept_warm_leaves_no_record(plane: Plane) -> None:
    one = plane.submitted("a")
    plane.change(one, claimed(one, shape=Shape(vector=of(1), warm_key="k")))
    plane.store.change_warm("main", None, warm("old"), at=NOON)
    assert plane.snapshot().warm_histories == {}


def test_a_warm_pool_is_counted_once_whoever_finds_it(plane: Plane) -> None:
    one = plane.running("a")
    plane.store.change_warm("main", None, warm("a"), at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.change_warm("main", None, warm("a"), at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.commit([replace(ended(one), leaves_warm=warm("a"))], at=NOON)
    assert (plane.snapshot().warm, plane.job("a")) == (of(1), one)


def test_a_warm_pool_is_changed_and_dropped_only_as_it_was_seen(plane: Plane) -> None:
    first, longer = warm("a"), warm("a", expires_at=NOON + minutes(20))
    plane.store.change_warm("main", None, first, at=NOON)
    plane.store.change_warm("main", first, longer, at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.change_warm("main", first, replace(first, releasing=True), at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.change_warm("main", first, None, at=NOON)
    assert (plane.snapshot().warm, plane.snapshot().warm_pools) == (of(1), (longer,))
    plane.store.change_warm("main", longer, replace(longer, releasing=True), at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.change_warm("main", longer, None, at=NOON)
    plane.store.change_warm("main", replace(longer, releasing=True), None, at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.change_warm("main", replace(longer, releasing=True), None, at=NOON)
    assert (plane.snapshot().warm, plane.snapshot().warm_pools) == ({}, ())


def test_a_claim_takes_its_warm_pool_once(plane: Plane) -> None:
    plane.store.change_warm("main", None, warm("a"), at=NOON)
    plane.store.change_warm("main", None, warm("b"), at=NOON)
    first, second = plane.submitted("x"), plane.submitted("y")
    plane.change(first, claimed(first), most_used=of(0), warm=of(2), reuses=warm("a"))
    with pytest.raises(LostRaceError):
        plane.change(second, claimed(second), most_used=of(1), warm=of(1), reuses=warm("a"))
    snapshot = plane.snapshot()
    assert (snapshot.used, snapshot.warm, snapshot.warm_pools) == (of(1), of(1), (warm("b"),))


def test_a_warm_pool_that_is_being_given_up_cannot_be_claimed(plane: Plane) -> None:
    plane.store.change_warm("main", None, warm("a"), at=NOON)
    plane.store.change_warm("main", warm("a"), warm("a", releasing=True), at=NOON)
    one = plane.submitted("x")
    with pytest.raises(LostRaceError):
        plane.change(one, claimed(one), warm=of(1), reuses=warm("a"))
    assert plane.snapshot().warm_pools == (warm("a", releasing=True),)


def test_what_a_warm_start_saved_is_in_the_usage(plane: Plane) -> None:
    one = plane.running("a", month="2026-11")
    bill: dict[str, Any] = {"instance_seconds": 3600, "cents": 60, "cents_by": {"productive": 60}}
    plane.store.commit([billed(one, "Completed", **bill, warm_saved_cents=35)], at=NOON)
    (line,), _ = plane.reader.usage("default", "2026-11")
    assert line.warm_saved_cents == 35


def test_a_warm_pool_that_was_lengthened_meanwhile_can_be_claimed(plane: Plane) -> None:
    longer = warm("a", expires_at=NOON + minutes(20))
    plane.store.change_warm("main", None, longer, at=NOON)
    one = plane.submitted("x")
    plane.change(one, claimed(one), warm=of(1), reuses=warm("a"))
    assert (plane.snapshot().warm, plane.snapshot().warm_pools) == ({}, ())


KEPT = warm("a", job="old", month="2026-11", usd_per_hour=Decimal(60), expires_at=NOON + minutes(9))
"""Of one dollar a minute."""


@pytest.mark.parametrize(
    ("minutes_later", "dollars"),
    [
        pytest.param(4, 4, id="for as long as it was kept"),
        pytest.param(30, 9, id="not for longer than SageMaker kept it"),
    ],
)
def test_a_warm_pool_that_is_gone_is_billed_to_the_job_that_left_it(
    plane: Plane, minutes_later: float, dollars: int
) -> None:
    plane.store.change_warm("main", None, KEPT, at=NOON)
    plane.store.change_warm("main", KEPT, None, at=NOON + minutes(minutes_later))
    cents = 100 * dollars
    line = UsageLine(job="old", instance_seconds=60 * dollars, cents=cents, by={Cause.WARM_POOL: cents})
    assert plane.reader.usage("default", "2026-11") == ((line,), ())
    assert plane.reader.month("default", "2026-11") == MonthAccount(spent=cents)


@pytest.mark.parametrize(
    ("kept", "seconds"),
    [
        pytest.param(KEPT, 62, id="not for the time until somebody looked"),
        pytest.param(
            replace(KEPT, billed_from=NOON + timedelta(seconds=40)),
            22,
            id="what a claim that did not land in it was billed for is not billed again",
        ),
        pytest.param(
            replace(KEPT, billed_from=NOON + timedelta(seconds=90)), 0, id="nor is anything given back"
        ),
    ],
)
def test_a_warm_pool_is_billed_for_what_sagemaker_says(plane: Plane, kept: WarmPool, seconds: int) -> None:
    plane.store.change_warm("main", None, kept, at=NOON)
    at = NOON + timedelta(seconds=342)
    plane.store.change_warm("main", kept, None, at=at, retained=timedelta(seconds=62))
    lines, _ = plane.reader.usage("default", "2026-11")
    assert sum(line.instance_seconds for line in lines) == seconds


def test_a_warm_pool_that_is_claimed_is_billed_up_to_the_claim(plane: Plane) -> None:
    plane.store.change_warm("main", None, KEPT, at=NOON)
    one = plane.submitted("x")
    condition = WriteCondition(policy_version=plane.policy.version, warm=of(1), reuses=KEPT)
    plane.store.commit([Change(before=one, after=claimed(one))], at=NOON + minutes(3), condition=condition)
    assert plane.reader.month("default", "2026-11") == MonthAccount(spent=300)


def test_a_learned_limit_is_replaced_and_forgotten(plane: Plane) -> None:
    first = AccountLimit(limit=2, until=NOON + minutes(1), refusals=1)
    second = AccountLimit(limit=1, until=NOON + minutes(2), refusals=2)
    plane.store.learn_limit("main", Capacity(A), first)
    plane.store.learn_limit("main", Capacity(A), second)
    plane.store.learn_limit("main", Capacity(B), first)
    assert plane.snapshot().account_limits == {Capacity(A): second, Capacity(B): first}
    plane.store.learn_limit("main", Capacity(A), None)
    plane.store.learn_limit("main", Capacity(A), None)
    assert plane.reader.pool_state("main").account_limits == {Capacity(B): first}


def test_a_reservation_is_made_at_the_claim_and_undone_without_an_attempt(plane: Plane) -> None:
    one = plane.submitted("a", team="vision")
    live = plane.change(one, claimed(one, month="2026-11", reserved_cents=700))
    assert plane.reader.month("vision", "2026-11") == MonthAccount(spent=0, reserved=700)
    plane.change(live, steps.unclaimed(live))
    assert plane.reader.month("vision", "2026-11") == MonthAccount(spent=0, reserved=0)
    assert plane.reader.usage("vision", "2026-11") == ((), ())


def test_a_claim_beyond_the_month_s_room_fails_whole(plane: Plane) -> None:
    one, other = plane.submitted("a", team="vision"), plane.submitted("b", team="vision")
    claim: dict[str, Any] = {"month": "2026-11", "reserved_cents": 700}
    plane.change(one, claimed(one, **claim), most_committed=0)
    with pytest.raises(LostRaceError):
        plane.change(other, claimed(other, **claim), most_committed=699)
    assert (plane.job("b"), plane.snapshot().used) == (other, of(1))
    plane.change(other, claimed(other, **claim), most_committed=700)
    assert plane.reader.month("vision", "2026-11") == MonthAccount(spent=0, reserved=1400)


def test_a_month_that_was_over_before_it_began_has_no_room(plane: Plane) -> None:
    one = plane.submitted("a", team="vision")
    with pytest.raises(LostRaceError):
        plane.change(one, claimed(one, month="2026-11", reserved_cents=9), most_committed=-1)
    assert plane.job("a") == one


def test_the_bill_takes_the_place_of_the_reservation_and_is_kept_by_job(plane: Plane) -> None:
    one = plane.running("a", team="vision", month="2026-11", reserved_cents=700)
    bill = {"cents": 120, "cents_by": {"productive": 100, "startup": 20}, "instance_seconds": 1800}
    plane.store.commit([billed(one, "Completed", **bill)], at=NOON)
    unpriced = plane.running("b", team="vision", month="2026-11")
    plane.store.commit([billed(unpriced, "Completed", cents=None, instance_seconds=60)], at=NOON)
    assert plane.reader.month("vision", "2026-11") == MonthAccount(spent=120, reserved=0)
    by = {Cause.PRODUCTIVE: 100, Cause.STARTUP: 20}
    lines, _ = plane.reader.usage("vision", "2026-11")
    assert lines == (
        UsageLine(job="a", instance_seconds=1800, cents=120, by=by),
        UsageLine(job="b", instance_seconds=60, cents=None, by={}),
    )
    assert plane.reader.usage("vision", "2026-12") == ((), ())


def test_training_that_nobody_saw_saved_is_kept_by_job_and_adds_up(plane: Plane) -> None:
    one = plane.running("a", team="vision", month="2026-11")
    asked = plane.change(one, steps.preempted_for(one, waiting("urgent")))
    bill: dict[str, Any] = {"cents": 50, "cents_by": {"unknown": 40, "startup": 10}, "instance_seconds": 1800}
    plane.store.commit([billed(asked, "Stopped", **bill)], at=NOON)
    again = plane.job("a")
    live = plane.change(again, claimed(again, "a-r1", month="2026-11", training_job_arn="arn:y"))
    kept = {"cents": 30, "cents_by": {"productive": 30}, "instance_seconds": 1800}
    plane.store.commit([billed(live, "Completed", **kept)], at=NOON)
    lines, _ = plane.reader.usage("vision", "2026-11")
    by = {Cause.PRODUCTIVE: 30, Cause.UNKNOWN: 40, Cause.STARTUP: 10}
    assert lines == (UsageLine(job="a", instance_seconds=3600, cents=80, by=by),)


def test_what_spot_saved_is_kept_by_job_and_adds_up(plane: Plane) -> None:
    one = plane.running("a", team="vision", month="2026-11")
    bill: dict[str, Any] = {"cents": 30, "cents_by": {"productive": 30}, "instance_seconds": 1800}
    asked = plane.change(one, steps.preempted_for(one, waiting("urgent")))
    plane.store.commit([billed(asked, "Stopped", **bill, saved_cents=70)], at=NOON)
    again = plane.job("a")
    live = plane.change(again, claimed(again, "a-r1", month="2026-11", training_job_arn="arn:y"))
    plane.store.commit([billed(live, "Completed", **bill, saved_cents=5)], at=NOON)
    lines, _ = plane.reader.usage("vision", "2026-11")
    by = {Cause.PRODUCTIVE: 60}
    assert lines == (UsageLine(job="a", instance_seconds=3600, cents=60, by=by, saved_cents=75),)


def test_days_of_spot_instances_are_added_up_by_type(plane: Plane) -> None:
    for name, at in (("a", NOON), ("b", NOON + minutes(60)), ("c", NOON + timedelta(days=1))):
        one = plane.running(name, vector=of(2, spot=True))
        over = billed(one, "Completed", interruptions=3, instance_seconds=7200)
        plane.store.commit([over], at=at)
    still = plane.running("d", vector=of(2))
    plane.store.commit([billed(still, "Completed", instance_seconds=99)], at=NOON)
    never = plane.running("e", vector=of(instance_type=B, spot=True))
    plane.store.commit([billed(never, "Stopped", instance_seconds=0)], at=NOON)
    assert plane.reader.spot_days(A) == (
        SpotDay(day=NOON.date(), interruptions=6, instance_seconds=14_400),
        SpotDay(day=NOON.date() + timedelta(days=1), interruptions=3, instance_seconds=7200),
    )
    assert plane.reader.spot_days("ml.a") == (), "no other type, however it begins"
    assert plane.reader.spot_days(B) == (), "on-demand instances and those that never came say nothing"


def test_who_took_what_from_whom_is_kept(plane: Plane) -> None:
    one = plane.running("v", team="vision", month="2026-11", has_checkpoint=False, vector=of(2))
    preemptor = waiting("urgent", team="speech")
    victim = plane.change(one, steps.preempted_for(one, preemptor))
    bill = {"cents": 90, "cents_by": {"preemption": 80}, "instance_seconds": 3600}
    plane.store.commit([billed(victim, "Stopped", **bill)], at=NOON)
    _, takings = plane.reader.usage("vision", "2026-11")
    assert takings == (
        PreemptionEntry(
            at=NOON,
            preemptor="urgent",
            preemptor_team="speech",
            victim="v",
            victim_team="vision",
            instance_seconds_lost=3600,
            cents_lost=80,
        ),
    )


def test_a_team_with_a_budget_brings_its_month_into_the_snapshot(plane: Plane) -> None:
    plane.running("a", team="vision", month="2026-11", reserved_cents=700)
    plane.submitted("b", team="vision")
    plane.submitted("c")
    budgets = plane.snapshot().budgets
    assert list(budgets) == ["vision"]
    assert budgets["vision"].account == MonthAccount(spent=0, reserved=700)
    assert (budgets["vision"].month, budgets["vision"].limit_cents) == ("2026-11", 10_000)


def test_a_team_is_warned_once_a_month(plane: Plane) -> None:
    plane.submitted("a", team="vision")
    assert not plane.snapshot().budgets["vision"].warned
    plane.store.warned("vision", "2026-11")
    assert plane.snapshot().budgets["vision"].warned
    assert plane.reader.month("vision", "2026-11") == MonthAccount()
    assert not plane.snapshot(at=timedelta(days=31)).budgets["vision"].warned


def test_the_order_that_a_pool_is_in_is_kept(plane: Plane) -> None:
    plane.store.ranked("main", "age-1")
    plane.store.ranked("main", "age-2")
    assert plane.reader.pool_state("main").order_key == "age-2"
    assert plane.snapshot().order_key == "age-2"


def test_passes_in_a_row_are_noted_by_who_knows_of_the_last_note(plane: Plane) -> None:
    first, second = NOON + minutes(1), NOON + minutes(1.5)
    assert plane.snapshot().goes_on_until is None
    assert plane.store.change_chain("main", None, first)
    assert not plane.store.change_chain("main", None, second)
    assert not plane.store.change_chain("main", second, None)
    assert plane.snapshot().goes_on_until == first
    assert plane.store.change_chain("main", first, second)
    assert plane.snapshot().goes_on_until == second
    assert plane.store.change_chain("main", second, None)
    assert plane.snapshot().goes_on_until is None
