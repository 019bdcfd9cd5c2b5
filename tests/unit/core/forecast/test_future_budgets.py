"""C9: in a future, ends give back what was reserved and not used, and months begin anew."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from trainmaster.core.costs.ledger import MonthAccount
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.durations.histogram import bucket
from trainmaster.core.forecast.queue_estimate import WholeQueue, estimate_queue
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import BudgetState, PreemptionReservation, RunningJob, WaitingJob
from trainmaster.core.policy import AtLimit

from tests.builders import NOON, A, minutes, of, pool, running, snapshot, waiting

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
PRICES = PriceTable(overrides={A: Decimal("1.408")})
HOURS = {("default", f"{A}=1"): {bucket(DAY): {bucket(HOUR): 50}}}
MONTH_LEFT = datetime.fromisoformat("2026-12-01T00:00Z") - NOON


def budget(dollars: int, *, spent: int = 0, reserved: int = 0) -> BudgetState:
    """In cents."""
    account = MonthAccount(spent=spent, reserved=reserved)
    return BudgetState(month="2026-11", account=account, limit_cents=dollars * 100, at_limit=AtLimit.WAIT)


def pays(name: str, **fields: Any) -> RunningJob:
    """A day at $1.408 an hour, of which half an hour has passed."""
    return running(name, runs_at_most=DAY, cents_per_hour=141, ends_by=NOON + DAY, **fields)


def question(*jobs: RunningJob | WaitingJob, own: BudgetState | None = None, **fields: Any) -> WholeQueue:
    asks = waiting("mine", runs_at_most=DAY, minutes_ago=0)
    ahead = tuple(job for job in jobs if isinstance(job, WaitingJob))
    budgets = {"default": own} if own else {}
    known = RunTimes(
        last=HOUR, previous=HOUR, since=NOON - timedelta(days=10), counts=HOURS["default", f"{A}=1"]
    )
    return WholeQueue(
        snapshot=snapshot(*jobs, budgets=budgets, prices=PRICES, **fields),
        waiting=(*ahead, asks),
        pool=pool(9),
        run_times={("default", f"{A}=1"): known},
        now=NOON,
    )


def waits(asked: WholeQueue) -> list[timedelta]:
    """How long the last of the queue is likely to wait; nothing where it never starts."""
    start = estimate_queue(asked).by_job.get("mine")
    return [] if start is None else [start.p50 - NOON]


def test_C9_it_starts_when_one_of_those_that_reserve_ends() -> None:
    drawn = waits(question(pays("pays-1"), pays("pays-2"), own=budget(100, reserved=6768)))
    assert drawn
    assert all(minutes(1) < wait < 2 * HOUR for wait in drawn)


def test_C9_one_that_uses_all_that_it_reserved_gives_nothing_back() -> None:
    """Both have a day that is nearly over: what is short comes back when the month ends."""
    late = [replace(pays(f"r{n}", minutes_ago=60 * 23.9), training_since=NOON - 23.9 * HOUR) for n in (1, 2)]
    drawn = waits(question(*late, own=budget(100, reserved=6768)))
    assert drawn
    assert all(MONTH_LEFT <= wait < MONTH_LEFT * 1.1 for wait in drawn)


def test_C9_at_the_latest_it_starts_when_the_month_has_ended() -> None:
    drawn = waits(question(own=budget(100, spent=9900)))
    assert drawn
    assert all(MONTH_LEFT <= wait < MONTH_LEFT * 1.1 for wait in drawn)


def test_C9_what_starts_before_reserves_its_share() -> None:
    """The month covers one of the two: the second waits for the end of the first."""
    ahead = waiting("ahead", runs_at_most=DAY, minutes_ago=9)
    drawn = waits(question(ahead, own=budget(40)))
    assert drawn
    assert all(minutes(30) < wait < 2 * HOUR for wait in drawn)


def test_C9_a_limit_of_the_account_is_asked_about_again_though_nothing_runs() -> None:
    limits = {next(iter(of(1))): AccountLimit(limit=0, until=NOON + HOUR, refusals=3)}
    drawn = waits(question(account_limits=limits))
    assert drawn
    assert all(HOUR <= wait < 1.2 * HOUR for wait in drawn)


def test_C9_instances_kept_for_one_that_its_budget_keeps_waiting_are_free_again_in_time() -> None:
    slow = waiting("slow", runs_at_most=DAY, n=9, team="poor", minutes_ago=9)
    hold = PreemptionReservation(preemptor="slow", vector=of(9), until=NOON + HOUR)
    asked = question(slow, holds=(hold,))
    poor = {"poor": budget(900, spent=89_999)}
    drawn = waits(replace(asked, snapshot=replace(asked.snapshot, budgets=poor)))
    assert drawn
    assert all(HOUR <= wait < 1.2 * HOUR for wait in drawn)


def test_C9_a_month_does_not_cover_what_is_dearer_than_it() -> None:
    assert waits(question(own=budget(20))) == []
