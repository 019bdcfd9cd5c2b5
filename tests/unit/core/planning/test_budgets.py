"""What a team's month allows to start, and how."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.costs.ledger import MonthAccount
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.jobs.instances import Choice, Vector
from trainmaster.core.planning.actions import Charge, WarnOfBudget
from trainmaster.core.planning.budgets import warnings
from trainmaster.core.planning.snapshot import BudgetState, Snapshot, WaitingJob
from trainmaster.core.policy import AtLimit

from tests.builders import NOON, A, B, of, pool, snapshot, waiting
from tests.unit.core.planning.plans import decided, shape, starts, told

PRICES = PriceTable(overrides={A: Decimal(2), B: Decimal("0.50")})
ROOMY = pool(9, b=9)
WITH_SPOT = replace(ROOMY, spot_capacity={A: 9})


def budget(
    dollars: int, *, spent: int = 0, reserved: int = 0, at_limit: AtLimit = AtLimit.WAIT, warned: bool = False
) -> BudgetState:
    return BudgetState(
        month="2026-11",
        account=MonthAccount(spent=spent * 100, reserved=reserved * 100),
        limit_cents=dollars * 100,
        at_limit=at_limit,
        warned=warned,
    )


def world(*jobs: WaitingJob, own: BudgetState, prices: PriceTable = PRICES) -> Snapshot:
    return snapshot(*jobs, budgets={"default": own}, prices=prices)


def hours(name: str, count: int, **fields: Any) -> WaitingJob:
    """A job that may run for so many hours."""
    return waiting(name, runs_at_most=timedelta(hours=count), **fields)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(budget(6), [("start", "a")], id="the worst case is just covered: 3 hours at $2"),
        pytest.param(budget(6, spent=1), [], id="less than the worst case is left of the month"),
        pytest.param(budget(6, reserved=1), [], id="what runs is counted at its worst case"),
        pytest.param(budget(12), [("start", "a"), ("start", "b")], id="both"),
        pytest.param(budget(11), [("start", "a")], id="the first has used up what the second needs"),
    ],
)
def test_the_worst_case_is_covered_before_a_start(own: BudgetState, expected: list[tuple[str, ...]]) -> None:
    both = (hours("a", 3, minutes_ago=1), hours("b", 3))
    assert decided(world(*both, own=own), ROOMY) == expected


def test_a_job_that_its_budget_keeps_waiting_stands_in_nobody_s_way() -> None:
    jobs = (hours("dear", 99, minutes_ago=1), hours("theirs", 99, team="other"), hours("cheap", 1))
    assert decided(world(*jobs, own=budget(6)), pool(2)) == [("start", "cheap"), ("start", "theirs")]


def test_the_reason_names_team_month_and_sums() -> None:
    found = world(hours("a", 3), own=budget(20, spent=9, reserved=7))
    assert told(found, ROOMY, "a") == (
        "budget",
        (
            "it may cost up to $6.00; of $20.00 for 2026-11 team default has spent $9.00 and reserved $7.00"
            " for what runs; it starts when $2.00 of that is free again, at the latest when the month ends,"
            " 2026-12-01 00:00 UTC"
        ),
    )


def test_without_a_price_a_team_with_a_budget_waits_and_others_start_uncharged() -> None:
    unknown = PriceTable()
    ours = world(hours("a", 3), own=budget(1000), prices=unknown)
    assert told(ours, ROOMY, "a") == (
        "budget",
        (
            "the price of its instances is unknown, and team default has a budget of $1,000.00:"
            " ask an admin for `prices`"
        ),
    )
    assert starts(snapshot(hours("a", 3), prices=unknown), ROOMY)["a"].charge is None


def test_a_start_is_charged_its_worst_case_and_says_how_much_may_be_committed_before() -> None:
    charge = starts(world(hours("a", 3, n=2), own=budget(20)), ROOMY)["a"].charge
    assert charge == Charge(month="2026-11", usd_per_hour=Decimal(4), cents=1200, room_cents=800)
    free = starts(snapshot(hours("a", 3), prices=PRICES), ROOMY)["a"].charge
    assert free == Charge(month="2026-11", usd_per_hour=Decimal(2), cents=600, room_cents=None)


def test_of_preferences_the_dearest_is_charged() -> None:
    job = hours("a", 1, shapes=(shape(1), shape(3, B)), choice=Choice.SAGEMAKER)
    charge = starts(world(job, own=budget(20)), ROOMY)["a"].charge
    assert charge is not None
    assert charge.cents == 200


def test_of_several_shapes_one_that_the_month_covers_is_taken() -> None:
    job = hours("a", 4, shapes=(shape(1), shape(1, B)))
    assert starts(world(job, own=budget(7)), ROOMY)["a"].shape.vector == of(1, B)


SAFE = {"has_checkpoint": True}


@pytest.mark.parametrize(
    ("job", "own", "vector"),
    [
        pytest.param(
            hours("a", 3, **SAFE),
            budget(6, at_limit=AtLimit.SPOT),
            of(1),
            id="covered: on-demand as asked for",
        ),
        pytest.param(
            hours("a", 3, **SAFE),
            budget(6, spent=5, at_limit=AtLimit.SPOT),
            of(1, spot=True),
            id="not covered, but something is left: as spot",
        ),
        pytest.param(
            hours("a", 3, **SAFE),
            budget(6, spent=6, at_limit=AtLimit.SPOT),
            None,
            id="all is spent: it waits",
        ),
        pytest.param(
            hours("a", 3, left_spot=True, **SAFE),
            budget(6, spent=5, at_limit=AtLimit.SPOT),
            None,
            id="never one that left spot",
        ),
        pytest.param(
            hours("a", 3), budget(6, spent=5, at_limit=AtLimit.SPOT), None, id="never without checkpoints"
        ),
        pytest.param(
            hours("a", 3, choice=Choice.SAGEMAKER, shapes=(shape(1), shape(1, B)), **SAFE),
            budget(1, at_limit=AtLimit.SPOT),
            None,
            id="never where SageMaker picks the type",
        ),
        pytest.param(
            hours("a", 3, shapes=(shape(1, spot=True),), **SAFE),
            budget(6, spent=5),
            None,
            id="there even a job that asked for spot waits",
        ),
        pytest.param(hours("a", 3, **SAFE), budget(6, spent=5), None, id="not where the policy says wait"),
    ],
)
def test_past_the_limit_a_job_may_run_as_spot(
    job: WaitingJob, own: BudgetState, vector: Vector | None
) -> None:
    found = starts(world(job, own=own), WITH_SPOT)
    assert (found["a"].shape.vector if "a" in found else None) == vector


def test_a_spot_start_past_the_limit_needs_no_room_in_the_month_but_is_charged() -> None:
    own = budget(6, spent=5, at_limit=AtLimit.SPOT)
    charge = starts(world(hours("a", 3, **SAFE), own=own), WITH_SPOT)["a"].charge
    assert charge == Charge(month="2026-11", usd_per_hour=Decimal(2), cents=600, room_cents=None)


def test_where_the_pool_has_no_spot_the_job_waits_for_its_budget() -> None:
    own = budget(6, spent=5, at_limit=AtLimit.SPOT)
    code, message = told(world(hours("a", 3, **SAFE), own=own), ROOMY, "a")
    assert code == "budget"
    assert message.startswith("it may cost up to $6.00; of $6.00 for 2026-11")


@pytest.mark.parametrize(
    ("own", "told_now"),
    [
        pytest.param(budget(100, spent=79), False, id="not before 80 %"),
        pytest.param(budget(100, spent=80), True, id="at 80 %"),
        pytest.param(budget(100, spent=10, reserved=90), False, id="what is only reserved is not spent"),
        pytest.param(budget(100, spent=99, warned=True), False, id="once"),
    ],
)
def test_a_team_is_told_when_most_of_its_month_is_spent(own: BudgetState, *, told_now: bool) -> None:
    expected = [
        WarnOfBudget(team="default", month="2026-11", spent_cents=own.account.spent, limit_cents=10_000)
    ]
    assert warnings(world(own=own)) == (expected if told_now else [])
    assert decided(world(own=own)) == ([("warn of budget", "default")] if told_now else [])


def test_now_is_the_month_that_is_charged() -> None:
    charge = starts(snapshot(hours("a", 1), prices=PRICES), ROOMY, now=NOON + timedelta(days=30))["a"].charge
    assert charge is not None
    assert charge.month == "2026-12"
