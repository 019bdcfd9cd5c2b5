"""C9: what ends a wait for a budget, and when; "never" is said of what no wait can change alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.costs.ledger import MonthAccount
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.planning.budget_relief import month_end
from trainmaster.core.planning.planner import starts_in_empty_pool
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import BudgetState, RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import AtLimit, Quota

from tests.builders import NOON, A, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import shape, shared, told

DAY = timedelta(days=1)
PRICES = PriceTable(overrides={A: Decimal("1.408")})
MONTH_OVER = "at the latest when the month ends, 2026-12-01 00:00 UTC"


def budget(dollars: int, *, spent: int = 0, reserved: int = 0) -> BudgetState:
    """In cents."""
    account = MonthAccount(spent=spent, reserved=reserved)
    return BudgetState(month="2026-11", account=account, limit_cents=dollars * 100, at_limit=AtLimit.WAIT)


def pays(name: str, **fields: Any) -> RunningJob:
    """A day at $1.408 an hour, half an hour of it gone."""
    return running(name, runs_at_most=DAY, cents_per_hour=140, ends_by=NOON + DAY, **fields)


def day(name: str = "pays-3", **fields: Any) -> WaitingJob:
    return waiting(name, runs_at_most=DAY, **fields)


def world(*live: RunningJob, own: BudgetState, job: WaitingJob | None = None) -> Snapshot:
    return snapshot(*live, job or day(), budgets={"default": own}, prices=PRICES)


def reason(found: Snapshot) -> str:
    code, message = told(found, pool(9), "pays-3")
    assert code == "budget"
    return message


def test_C9_the_reason_names_what_is_short_who_reserves_it_and_the_month() -> None:
    own = budget(100, reserved=6760)
    message = reason(world(pays("pays-1"), pays("pays-2"), own=own))
    assert message == (
        "it may cost up to $33.80; of $100.00 for 2026-11 team default has spent $0.00 and reserved $67.60"
        " for what runs; it starts when $1.40 of that is free again: pays-1 reserves it until it ends, "
        + MONTH_OVER
    )


def test_C9_the_likely_end_of_those_who_reserve_is_an_instant_once_their_like_were_seen_to_end() -> None:
    live = [pays(name, predicted=timedelta(hours=hours)) for name, hours in (("long", 9), ("short", 2))]
    message = reason(world(*live, own=budget(100, reserved=6760)))
    assert ": short reserves it until it ends, likely by 2026-11-02 13:30 UTC, " + MONTH_OVER in message


def test_C9_as_many_are_named_as_give_back_enough() -> None:
    live = [pays(f"r{number}", predicted=timedelta(hours=10 + number)) for number in range(6)]
    message = reason(world(*live, own=budget(150, reserved=20280)))
    assert ": r0, r1, r2 and 3 more reserve it until they end" in message


def test_C9_nobody_is_named_where_all_that_is_likely_to_come_back_is_not_enough() -> None:
    live = [pays(f"r{number}", predicted=timedelta(hours=23)) for number in range(2)]
    message = reason(world(*live, own=budget(80, reserved=6760)))
    assert message.endswith(f"; it starts when $21.40 of that is free again, {MONTH_OVER}")


@pytest.mark.parametrize(
    ("own", "live"),
    [
        pytest.param(budget(100, spent=9000), (), id="all that is short is spent"),
        pytest.param(budget(100, spent=9000, reserved=1000), (pays("r"),), id="what runs is not enough"),
    ],
)
def test_C9_where_nothing_can_come_back_it_is_the_month_alone(
    own: BudgetState, live: tuple[RunningJob, ...]
) -> None:
    assert reason(world(*live, own=own)).endswith(
        "; it starts when the month ends, 2026-12-01 00:00 UTC: all that runs cannot give back so much"
    )


def test_C9_jobs_of_other_teams_and_of_other_pools_are_not_named() -> None:
    theirs = pays("theirs", team="other")
    message = reason(world(theirs, own=budget(100, reserved=6760)))
    assert message.endswith(f"; it starts when $1.40 of that is free again, {MONTH_OVER}")


def test_C9_of_what_the_whole_month_does_not_cover_no_end_is_promised() -> None:
    message = reason(world(own=budget(20)))
    assert "more than the $20.00 that team default has for a whole month" in message
    assert "month ends" not in message


@pytest.mark.parametrize(
    ("month", "end"),
    [("2026-11", datetime(2026, 12, 1, tzinfo=UTC)), ("2026-12", datetime(2027, 1, 1, tzinfo=UTC))],
)
def test_a_month_ends_where_the_next_begins(month: str, end: datetime) -> None:
    assert month_end(month) == end


# ---- never

FULL = (running("r", n=9, preemptible=False),)
LIMITED = {"account_limits": {next(iter(of(1))): AccountLimit(limit=0, until=NOON + minutes(9), refusals=3)}}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(world(pays("r"), own=budget(100, spent=5000, reserved=5000)), id="the month is used up"),
        pytest.param(replace(snapshot(*FULL, day()), prices=PRICES), id="all is in use"),
        pytest.param(snapshot(day(), **LIMITED), id="AWS refuses it"),
        pytest.param(snapshot(day(), paused=True), id="paused"),
    ],
)
def test_C9_what_is_only_so_now_is_not_never(found: Snapshot) -> None:
    assert starts_in_empty_pool(found.waiting[0], found, pool(9), now=NOON)


@pytest.mark.parametrize(
    ("job", "rules"),
    [
        pytest.param(day(n=10), pool(9), id="larger than the pool"),
        pytest.param(
            day(n=2), shared(9, {"default": Quota(nominal={A: 1}, borrowing_limit={A: 0})}), id="quota"
        ),
        pytest.param(
            day(n=2, preemptible=False, own_quota={A: 1}),
            shared(9, {"default": Quota(nominal={A: 1})}),
            id="loans",
        ),
        pytest.param(day(shapes=(shape(10), shape(1, B))), pool(9), id="each of its shapes"),
    ],
)
def test_C9_what_no_wait_changes_is_never(job: WaitingJob, rules: Any) -> None:
    assert not starts_in_empty_pool(job, snapshot(job), rules, now=NOON)


def test_C9_dearer_than_the_month_is_never() -> None:
    found = world(own=budget(20))
    assert not starts_in_empty_pool(found.waiting[0], found, pool(9), now=NOON)
