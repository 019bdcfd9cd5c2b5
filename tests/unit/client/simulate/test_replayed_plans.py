"""Replays with training plans: what plans would have come to if they had been bought."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from trainmaster.core.policy import Policy
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.comparison.audits import outside_windows, over_capacity
from trainmaster_client.simulate.comparison.comparisons import Comparison, compare
from trainmaster_client.simulate.comparison.devices import Devices
from trainmaster_client.simulate.comparison.figure_rows import figure_rows
from trainmaster_client.simulate.comparison.figures import capacity_device_s
from trainmaster_client.simulate.engine import pool_passes
from trainmaster_client.simulate.engine.event_loop import nothing_yet
from trainmaster_client.simulate.engine.past_jobs import AccountBounds, PastJob
from trainmaster_client.simulate.engine.replayed_plans import (
    BoughtPlan,
    with_bought,
    with_known_plans,
    without_plans,
)
from trainmaster_client.simulate.engine.replays import Replay, ReplayedAttempt
from trainmaster_client.simulate.engine.variations import with_capacity
from trainmaster_client.simulate.io.replaying import replay

from tests.unit.client.simulate.replayed import G5, HIGH, LOW, attempts, history, instant, job, policy

HOUR = 3600
ON = "plan/what-if-1"
STOP_S = 180


def plan(*hours: tuple[float, float], instances: int = 1, usd: str | None = "100") -> BoughtPlan:
    windows = tuple((instant(begin * HOUR), instant(end * HOUR)) for begin, end in hours)
    fee = None if usd is None else Decimal(usd)
    return BoughtPlan(instance_type=G5, instances=instances, windows=windows, fee_usd=fee)


def bought(capacity: int, *plans: BoughtPlan, **pool: Any) -> Policy:
    return with_bought(policy(capacity, **{"warm_pool": {"keep_alive": "0s"}} | pool), plans)


def played(*jobs: PastJob, policy: Policy) -> dict[tuple[str, int], ReplayedAttempt]:
    return attempts(replay(history(*jobs), policy, label="a"))


def ran_on(row: ReplayedAttempt) -> tuple[str, str]:
    return row.capacity_type, row.end


def test_a_job_runs_on_the_plan_first_and_on_demand_once_the_window_closes() -> None:
    found = played(job("a", trains=6 * HOUR, saves=600), policy=bought(1, plan((0, 4))))
    first, again = found["a", 0], found["a", 1]
    assert (ran_on(first), ran_on(again)) == ((ON, "preempted"), ("on-demand", "completed"))
    closes = 4 * HOUR - 40 * 60
    assert closes <= first.end_s - first.stopping_s <= closes + 60
    assert first.end_s <= 4 * HOUR - 30 * 60
    assert again.start_s < first.end_s + 60


def test_without_on_demand_it_resumes_in_the_next_window() -> None:
    found = played(job("a", trains=6 * HOUR, saves=600), policy=bought(0, plan((0, 4), (24, 30))))
    assert [ran_on(found["a", number]) for number in (0, 1)] == [(ON, "preempted"), (ON, "completed")]
    assert 24 * HOUR <= found["a", 1].start_s <= 24 * HOUR + 60


def test_a_job_that_saves_nothing_starts_on_the_plan_only_if_it_ends_in_time() -> None:
    rules = bought(0, plan((0, 4)))
    short = job("short", trains=HOUR, max_runtime=timedelta(hours=2))
    long = job("long", trains=HOUR, max_runtime=timedelta(hours=5))
    found = played(short, long, policy=rules)
    assert {name for name, _ in found} == {"short"}
    assert ran_on(found["short", 0]) == (ON, "completed")


def test_two_plans_of_a_type_stay_apart() -> None:
    rules = bought(0, plan((0, 4)), plan((2, 8), instances=2))
    jobs = [job(name, trains=HOUR, saves=600, at=2.1 * HOUR) for name in "abc"]
    found = replay(history(*jobs), rules, label="a")
    assert sorted(row.capacity_type for row in found.attempts) == [ON, "plan/what-if-2", "plan/what-if-2"]
    assert (over_capacity(found), outside_windows(found)) == ([], [])


def test_a_job_wider_than_the_pool_is_admitted_where_a_plan_is_wide_enough() -> None:
    wide = job("wide", n=3, trains=600, max_runtime=timedelta(hours=1))
    assert nothing_yet(history(wide), bought(1), label="").refused
    found = replay(history(wide), bought(1, plan((1, 5), instances=3)), label="a")
    assert [ran_on(row) for row in found.attempts] == [(ON, "completed")]
    assert found.attempts[0].start_s == HOUR


def test_a_job_that_asked_for_a_plan_alone_runs_on_plans_alone() -> None:
    only = job("only", capacity_type="plan", trains=600, saves=60)
    found = played(only, policy=bought(5, plan((1, 5))))
    assert (found["only", 0].start_s, found["only", 0].capacity_type) == (HOUR, ON)
    refused = nothing_yet(history(only), bought(5), label="").refused
    assert refused == {"only": "asks for 1, but pool g1 has 0 plan ml.g5.xlarge in all"}


def test_a_spot_job_is_not_interrupted_on_a_plan() -> None:
    spot = job("spot", capacity_type="spot", trains=HOUR, saves=600, breaks=[(600, "interrupted")])
    found = played(spot, policy=bought(0, plan((0, 5)), spot_capacity={G5: 1}))
    assert [ran_on(row) for row in found.values()] == [(ON, "completed")]


def test_the_accounts_quota_does_not_cover_a_plan() -> None:
    bounded = replace(
        history(*(job(name, trains=HOUR, saves=600) for name in "ab")),
        account=AccountBounds(instances={G5: 1}),
    )
    found = replay(bounded, bought(2, plan((0, 8))), label="a")
    assert sorted(row.capacity_type for row in found.attempts) == ["on-demand", ON]
    assert {row.start_s for row in found.attempts} == {0}


def test_a_low_job_on_the_plan_makes_room_for_a_high_one() -> None:
    low = job("low", trains=6 * HOUR, saves=600, priority=LOW)
    high = job("high", trains=600, saves=600, priority=HIGH, at=HOUR)
    found = played(low, high, policy=bought(0, plan((0, 12)), preemption={"min_runtime": "0s"}))
    assert (found["low", 0].preempted_by, ran_on(found["high", 0])) == ("high", (ON, "completed"))


def test_another_capacity_keeps_what_is_known_of_plans() -> None:
    arn = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
    (pool,) = bought(1, plan((0, 4))).pools
    seen = replace(next(iter(pool.seen_plans.values())), arn=arn)
    rules = with_known_plans(policy(1, plans=[{"arn": arn}]), {arn: seen})
    assert [plan.name for _, plan in with_capacity(rules, {G5: 3}).pools[0].known_plans] == ["spring"]


def test_a_plan_of_a_type_that_no_pool_has_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no pool has ml\.p5\.48xlarge") as refusal:
        with_bought(policy(1), [replace(plan((0, 4)), instance_type="ml.p5.48xlarge")])
    assert "capacity: {ml.p5.48xlarge: 0}" in str(refusal.value)


# ---- figures


def compared(*jobs: PastJob, rules: Policy) -> Comparison:
    past = history(*jobs)
    columns = [replay(past, without_plans(rules), label="now"), replay(past, rules, label="plan")]
    return compare(past, columns)


def test_the_bill_has_the_whole_fee_and_what_is_unused_of_it() -> None:
    jobs = [job("a", trains=2 * HOUR, saves=600), job("late", at=12 * HOUR, trains=600)]
    result = compared(*jobs, rules=bought(1, plan((0, 10), usd="100")))
    bill, before = result.columns[1].bill, result.columns[0].bill
    (on_plan,) = [row for row in result.columns[1].replay.attempts if row.is_on_plan]
    held_h = (on_plan.end_s - on_plan.start_s) / HOUR
    assert bill.plans is not None
    assert (bill.plans.fee_usd, bill.plans.paid_h) == (100, 10)
    assert bill.plans.unused_h == pytest.approx(10 - held_h)
    assert bill.unused_plan_usd == pytest.approx(100 - 10 * held_h)
    late = before.jobs_usd * 600 / (600 + 2 * HOUR + 240)  # both columns run it on demand
    assert bill.total_usd == pytest.approx(100 + late, rel=0.05)
    assert (before.plans, before.unused_plan_usd) == (None, 0)
    rows = {row.id: row.values for row in figure_rows(result)}
    assert rows["plan_fee_usd"] == [0, 100]
    assert rows["plan_use"] == [None, pytest.approx(held_h / 10)]
    assert rows["wait_p50_s"][1] == 0


def test_a_plan_whose_fee_is_not_known_is_named_and_in_no_sum() -> None:
    bill = compared(job("a"), rules=bought(0, plan((0, 10), usd=None))).columns[1].bill
    assert (bill.unpriced, bill.total_usd) == ((ON,), 0)


def test_the_capacity_counts_windows_only_while_they_last() -> None:
    found = nothing_yet(history(job("a")), bought(2, plan((1, 3), instances=4)), label="")
    assert capacity_device_s(found, Devices.of_types([]), horizon_s=2 * HOUR) == (2 * 2 + 4) * HOUR
    assert found.capacity["g1"]["on-demand"] == {G5: 2}
    assert any("what-if-1" in note for note in found.notes)


def test_a_policy_whose_plans_are_not_known_is_replayed_without_them_and_says_so() -> None:
    arn = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
    rules = policy(1, plans=[{"arn": arn}])
    found = replay(history(job("a")), rules, label="a")
    assert found.plans == []
    assert [note for note in found.notes if "spring are left out" in note]
    assert found.attempts == replay(history(job("a")), policy(1), label="a").attempts


# ---- whatever happens


@pytest.mark.parametrize("seed", range(12))
def test_at_no_instant_is_more_used_than_a_plan_has_nor_after_its_end(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    begins = sorted(chance.sample(range(20), 3))
    first = plan(*((at, at + chance.uniform(0.8, 1)) for at in begins), instances=chance.randint(1, 3))
    second = plan((chance.randint(0, 9), chance.randint(10, 30)), instances=chance.randint(1, 2))
    rules = bought(chance.randint(0, 2), first, second, preemption={"min_runtime": "0s"})
    jobs = [
        job(
            f"j{number}",
            at=chance.randrange(20 * HOUR),
            n=chance.randint(1, 2),
            trains=chance.choice([600, HOUR, 4 * HOUR]),
            team=chance.choice(["vision", "language"]),
            priority=chance.choice([LOW, HIGH]),
            max_runtime=timedelta(hours=chance.choice([1, 5, 24])),
            saves=chance.choice([None, 300]),
        )
        for number in range(25)
    ]
    found = replay(history(*jobs), rules, label="a")
    _check(found)
    monkeypatch.setattr(pool_passes, "may_act", lambda *_args, **_more: True)
    assert replay(history(*jobs), rules, label="a").attempts == found.attempts, "no useful pass is left out"


def _check(found: Replay) -> None:
    """By the definition: each plan is of so many instances, from its begin to 30 minutes before its end."""
    plans = {plan.capacity_type: plan for plan in found.plans}
    steps: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in found.attempts:
        if not row.is_on_plan:
            continue
        steps[row.capacity_type] += [(row.start_s, row.instances), (row.end_s, -row.instances)]
        windows = plans[row.capacity_type].windows
        (window,) = [window for window in windows if window.since_s <= row.start_s < window.until_s]
        assert row.end_s <= window.until_s - 1800, row
    for name, changes in steps.items():
        held = 0
        for _, change in sorted(changes):
            held += change
            assert held <= plans[name].most
