"""What a month was spent on, what of a budget is left, who took what from whom."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.costs.ledger import (
    Cause,
    EndedAttempt,
    MonthAccount,
    PreemptionEntry,
    UsageLine,
    admits,
    budget_cents,
    budget_reason,
    line_of,
    lost_to,
    month_of,
    usage_view,
    warm_pool_line,
    warns,
)

from tests.builders import NOON, minutes

HOURLY = Decimal(60)
"""A dollar a minute for all instances together."""


def ended(**fields: Any) -> EndedAttempt:
    """Two instances, claimed 70 minutes ago, up for 60, in training for 50."""
    values: dict[str, Any] = {
        "job": "job1",
        "instances": 2,
        "usd_per_hour": HOURLY,
        "claimed_at": NOON - minutes(70),
        "up": minutes(60),
        "trained": minutes(50),
        "ended_at": NOON,
        "billable": minutes(60),
    }
    return EndedAttempt(**values | fields)


def spent(line: UsageLine) -> dict[str, int]:
    """Cents by cause, without those that nothing was spent on."""
    return {cause.value: cents for cause, cents in line.by.items() if cents}


@pytest.mark.parametrize(
    ("attempt", "cents", "by"),
    [
        pytest.param(
            ended(), 6000, {"startup": 1000, "productive": 5000}, id="before Training it is start-up"
        ),
        pytest.param(
            ended(lost=minutes(20), lost_to=Cause.PREEMPTION),
            6000,
            {"startup": 1000, "productive": 3000, "preemption": 2000},
            id="what the last checkpoint missed is lost to the preemption",
        ),
        pytest.param(
            ended(lost=minutes(50)),
            6000,
            {"startup": 1000, "failures": 5000},
            id="a failure without checkpoints loses all training",
        ),
        pytest.param(
            ended(lost=minutes(90), lost_to=Cause.IDLE),
            6000,
            {"startup": 1000, "idle": 5000},
            id="more cannot be lost than was trained",
        ),
        pytest.param(
            ended(idle=minutes(25)),
            6000,
            {"startup": 1000, "productive": 2500, "idle": 2500},
            id="from the idle alarm to the end that came of it nothing was productive",
        ),
        pytest.param(
            ended(idle=minutes(25), lost=minutes(40), lost_to=Cause.IDLE),
            6000,
            {"startup": 1000, "productive": 1000, "idle": 4000},
            id="what an idle end lost of the training before is put down to it too, and nothing twice",
        ),
        pytest.param(
            ended(idle=minutes(90)),
            6000,
            {"startup": 1000, "idle": 5000},
            id="idle no longer than it trained",
        ),
        pytest.param(
            ended(up=None),
            6000,
            {"startup": 1000, "productive": 5000},
            id="when the instances began to run follows from the bill",
        ),
        pytest.param(
            ended(billable=None),
            6000,
            {"startup": 1000, "productive": 5000},
            id="without a bill the time the instances ran counts",
        ),
        pytest.param(
            ended(billable=None, up=None),
            7000,
            {"startup": 2000, "productive": 5000},
            id="without both all time since the claim counts",
        ),
        pytest.param(
            ended(billable=minutes(18)),
            1800,
            {"startup": 300, "productive": 1500},
            id="the discount of spot is shared by all causes",
        ),
        pytest.param(
            ended(billable=timedelta(seconds=1)),
            2,
            {"productive": 2},
            id="cents are not divided: 1.67 and 0.33",
        ),
        pytest.param(
            ended(
                up=timedelta(seconds=20.4),
                trained=timedelta(seconds=18.6),
                billable=None,
                usd_per_hour=Decimal(1),
            ),
            1,
            {"productive": 1},
            id="the only cent goes to what took most of the time",
        ),
        pytest.param(
            ended(trained=minutes(50), lost=minutes(20), idle=minutes(15), billable=timedelta(seconds=3)),
            5,
            {"productive": 3, "idle": 1, "startup": 1},
            id="odd cents go to the largest remainders",
        ),
        pytest.param(
            ended(trained=timedelta()),
            6000,
            {"startup": 6000},
            id="what never trained was start-up",
        ),
        pytest.param(
            ended(trained=timedelta(), up=timedelta(), billable=timedelta(seconds=1)),
            2,
            {"startup": 2},
            id="a bill for no time that was seen is start-up",
        ),
        pytest.param(
            ended(trained=timedelta(), up=None, billable=timedelta()),
            0,
            {},
            id="no instances, no bill",
        ),
        pytest.param(
            ended(trained=minutes(-5), up=minutes(-9), billable=timedelta()),
            0,
            {},
            id="clocks that disagree do not make a negative cost",
        ),
    ],
)
def test_the_bill_of_an_attempt(attempt: EndedAttempt, cents: int, by: dict[str, int]) -> None:
    line = line_of(attempt)
    assert line.cents == cents
    assert spent(line) == by


def test_use_counts_every_instance_for_as_long_as_it_ran_whatever_the_discount() -> None:
    assert line_of(ended()).instance_seconds == 7200
    assert line_of(ended(billable=minutes(18))).instance_seconds == 7200


@pytest.mark.parametrize(
    ("attempt", "saved"),
    [
        pytest.param(ended(), 0, id="billed for all of its time: nothing"),
        pytest.param(ended(billable=minutes(18)), 4200, id="what spot is billed less"),
        pytest.param(ended(billable=minutes(18), usd_per_hour=None), 0, id="without a price nobody knows"),
        pytest.param(ended(billable=None), 0, id="without a bill nobody knows"),
        pytest.param(
            ended(billable=minutes(18), up=None), 0, id="nor without the time its instances were there"
        ),
        pytest.param(ended(billable=minutes(61)), 0, id="a bill for more is no negative saving"),
    ],
)
def test_what_spot_saves(attempt: EndedAttempt, saved: int) -> None:
    assert line_of(attempt).saved_cents == saved


def test_an_unknown_price_is_an_unknown_cost_of_a_known_use() -> None:
    line = line_of(ended(usd_per_hour=None))
    assert line == UsageLine(job="job1", instance_seconds=7200, cents=None, by={})


def test_a_warm_pool_is_paid_for_by_the_job_that_left_it() -> None:
    line = warm_pool_line("job1", instances=2, usd_per_hour=HOURLY, retained=minutes(10))
    assert line == UsageLine(job="job1", instance_seconds=1200, cents=1000, by={Cause.WARM_POOL: 1000})


def test_a_warm_pool_without_a_price_has_an_unknown_cost() -> None:
    line = warm_pool_line("job1", instances=2, usd_per_hour=None, retained=minutes(10))
    assert line == UsageLine(job="job1", instance_seconds=1200, cents=None, by={})


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("preemption", Cause.PREEMPTION),
        ("idle", Cause.IDLE),
        ("idle-requeue", Cause.IDLE),
        ("network", Cause.FAILURES),
        ("spot-fallback", Cause.FAILURES),
        ("deleted-outside", Cause.FAILURES),
    ],
)
def test_lost_training_is_put_down_to_the_reason_of_the_end(code: str, cause: Cause) -> None:
    assert lost_to(code) is cause


seconds = st.integers(-3600, 86_400).map(lambda count: timedelta(seconds=count))
attempts = st.builds(
    EndedAttempt,
    job=st.sampled_from(["a", "b", "c"]),
    instances=st.integers(1, 64),
    usd_per_hour=st.none() | st.decimals(0, 200, places=6),
    claimed_at=seconds.map(lambda before: NOON - before),
    ended_at=st.just(NOON),
    up=st.none() | seconds,
    trained=seconds,
    idle=st.just(timedelta()) | seconds,
    billable=st.none() | st.integers(0, 86_400).map(lambda count: timedelta(seconds=count)),
    lost=seconds,
    lost_to=st.sampled_from([Cause.PREEMPTION, Cause.FAILURES, Cause.IDLE]),
)


@given(attempts)
def test_the_causes_add_up_to_the_cost_and_none_is_negative(attempt: EndedAttempt) -> None:
    line = line_of(attempt)
    assert line.instance_seconds >= 0
    assert all(isinstance(cents, int) and cents >= 0 for cents in line.by.values())
    assert (line.cents is None) == (attempt.usd_per_hour is None)
    assert sum(line.by.values()) == (line.cents or 0)


@given(attempts)
def test_of_an_attempt_that_lost_nothing_nothing_is_put_down_to_a_loss(attempt: EndedAttempt) -> None:
    if attempt.lost <= timedelta() and attempt.idle <= timedelta():
        assert set(spent(line_of(attempt))) <= {"productive", "startup"}


@given(st.lists(attempts, max_size=6))
def test_the_view_adds_up_by_job_and_in_total_in_any_order(ended_attempts: list[EndedAttempt]) -> None:
    lines = [line_of(attempt) for attempt in ended_attempts]
    view = usage_view("vision", "2026-11", lines)
    unknown = any(line.cents is None for line in lines)
    assert [job["name"] for job in view["jobs"]] == sorted({line.job for line in lines})
    assert cents(view["total"]["known_usd"]) == sum(sum(line.by.values()) for line in lines)
    assert (view["total"]["usd"] is None) == unknown
    for one in [*view["jobs"], view["total"]]:
        if one["usd"] is not None:
            assert sum(map(cents, one["by"].values())) == cents(one["usd"])
    assert usage_view("vision", "2026-11", reversed(lines)) == view


def cents(usd: float) -> int:
    return round(usd * 100)


@pytest.mark.parametrize(
    ("instant", "month"),
    [
        pytest.param(datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC), "2026-11", id="the last second"),
        pytest.param(datetime(2026, 12, 1, tzinfo=UTC), "2026-12", id="the first instant"),
        pytest.param(
            datetime(2026, 12, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2026-11", id="months are in UTC"
        ),
        pytest.param(datetime(2027, 1, 1, tzinfo=UTC), "2027-01", id="the year turns"),
    ],
)
def test_the_month_of_an_instant(instant: datetime, month: str) -> None:
    assert month_of(instant) == month


@pytest.mark.parametrize(
    ("usd", "cents"), [("50000", 5_000_000), ("0.29", 29), ("10.999", 1099), ("0", 0), ("1E+3", 100_000)]
)
def test_a_budget_in_usd_is_whole_cents(usd: str, cents: int) -> None:
    assert budget_cents(Decimal(usd)) == cents


@pytest.mark.parametrize(
    ("account", "worst_case", "admitted"),
    [
        pytest.param(MonthAccount(), 1000, True, id="all of it"),
        pytest.param(MonthAccount(), 1001, False, id="a cent too much"),
        pytest.param(MonthAccount(spent=400, reserved=500), 100, True, id="what is left"),
        pytest.param(MonthAccount(spent=400, reserved=501), 100, False, id="reservations count"),
        pytest.param(MonthAccount(spent=2000), 0, False, id="overspent, nothing starts, not even for free"),
        pytest.param(MonthAccount(), None, False, id="a cost that nobody knows is not within any budget"),
    ],
)
def test_a_start_has_to_fit_the_budget_at_its_worst(
    account: MonthAccount, worst_case: int | None, *, admitted: bool
) -> None:
    assert admits(1000, account, worst_case) is admitted


def test_the_end_of_an_attempt_gives_back_what_it_did_not_need() -> None:
    claimed = MonthAccount(spent=100).reserve(900)
    assert claimed == MonthAccount(spent=100, reserved=900)
    assert claimed.settle(reserved=900, cents=250) == MonthAccount(spent=350, reserved=0)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [(0, 799, False), (0, 800, True), (799, 1500, True), (800, 801, False), (900, 999, False)],
)
def test_people_are_told_once_when_80_per_cent_are_spent(before: int, after: int, *, told: bool) -> None:
    assert warns(1000, MonthAccount(spent=before), MonthAccount(spent=after)) is told


def test_a_budget_of_nothing_warns_of_nothing() -> None:
    assert not warns(0, MonthAccount(), MonthAccount())


@given(
    budget=st.integers(0, 10_000),
    jobs=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 100)), max_size=20),
)
def test_who_is_only_admitted_and_settled_never_overspends_and_is_warned_at_most_once(
    budget: int, jobs: list[tuple[int, int]]
) -> None:
    account, warnings, live = MonthAccount(), 0, []
    for worst_case, per_cent in jobs:
        if admits(budget, account, worst_case):
            account = account.reserve(worst_case)
            live.append((worst_case, worst_case * per_cent // 100))
        assert account.spent + account.reserved <= budget
        if live and per_cent % 2:
            reserved, cost = live.pop(0)
            before, account = account, account.settle(reserved=reserved, cents=cost)
            warnings += warns(budget, before, account)
    assert account.reserved == sum(reserved for reserved, _ in live)
    assert warnings <= 1


@pytest.mark.parametrize(
    ("worst_case", "message"),
    [
        pytest.param(
            300_000,
            "it may cost up to $3,000.00; of $50,000.00 for 2026-11 team vision has spent $40.00"
            " and reserved $49,000.00 for what runs",
            id="the month has not enough left",
        ),
        pytest.param(
            6_000_000,
            "it may cost up to $60,000.00, more than the $50,000.00 that team vision has for a whole month:"
            " lower its MaxRuntimeInSeconds or ask an admin for a larger budget",
            id="no month has enough",
        ),
        pytest.param(
            None,
            "the price of its instances is unknown, and team vision has a budget of $50,000.00:"
            " ask an admin for `prices`",
            id="nobody knows the price",
        ),
    ],
)
def test_the_reason_to_wait_has_figures_to_act_on(worst_case: int | None, message: str) -> None:
    account = MonthAccount(spent=4000, reserved=4_900_000)
    reason = budget_reason(
        "vision", month="2026-11", budget=5_000_000, account=account, worst_case=worst_case
    )
    assert (reason.code, reason.message) == ("budget", message)


def test_training_that_nobody_saw_saved_is_a_cause_of_its_own() -> None:
    """What is lost or idle comes first, and nothing is counted twice."""
    assert spent(line_of(ended(unknown=minutes(50)))) == {"unknown": 5000, "startup": 1000}
    both = ended(unknown=minutes(50), lost=minutes(20), idle=minutes(10), lost_to=Cause.PREEMPTION)
    assert spent(line_of(both)) == {"unknown": 3000, "preemption": 1000, "idle": 1000, "startup": 1000}


def test_the_view_has_the_shape_that_the_api_promises() -> None:
    lines = [
        line_of(ended(job="b", usd_per_hour=None)),
        line_of(ended(job="a", lost=minutes(20), lost_to=Cause.PREEMPTION)),
        warm_pool_line("a", instances=2, usd_per_hour=HOURLY, retained=minutes(10)),
        UsageLine(job="a", saved_cents=4200),
    ]
    nothing = dict.fromkeys(cause.value for cause in Cause)
    assert json.loads(json.dumps(usage_view("vision", "2026-11", lines))) == {
        "team": "vision",
        "month": "2026-11",
        "jobs": [
            {
                "name": "a",
                "instance_hours": 2.333,
                "instance_seconds": 8400,
                "usd": 70.0,
                "saved_usd": 42.0,
                "by": {
                    "productive": 30.0,
                    "unknown": 0.0,
                    "preemption": 20.0,
                    "failures": 0.0,
                    "idle": 0.0,
                    "warm_pool": 10.0,
                    "startup": 10.0,
                },
            },
            {
                "name": "b",
                "instance_hours": 2.0,
                "instance_seconds": 7200,
                "usd": None,
                "saved_usd": 0.0,
                "by": nothing,
            },
        ],
        "total": {
            "instance_hours": 4.333,
            "instance_seconds": 15600,
            "usd": None,
            "saved_usd": 42.0,
            "by": nothing,
            "known_usd": 70.0,
        },
        "preemptions": [],
    }


def entry(**fields: Any) -> PreemptionEntry:
    values: dict[str, Any] = {
        "at": NOON,
        "preemptor": "urgent",
        "preemptor_team": "speech",
        "victim": "slow",
        "victim_team": "vision",
        "instance_seconds_lost": 5400,
        "cents_lost": 1234,
    }
    return PreemptionEntry(**values | fields)


def test_a_team_sees_what_was_taken_from_it_and_not_the_name_of_the_other_teams_job() -> None:
    (shown,) = usage_view("vision", "2026-11", [], [entry()])["preemptions"]
    assert shown == {
        "at": "2026-11-02T12:00:00.000Z",
        "preemptor": None,
        "preemptor_team": "speech",
        "victim": "slow",
        "victim_team": "vision",
        "instance_hours_lost": 1.5,
        "usd_lost": 12.34,
    }


def test_a_team_sees_what_it_took_and_that_a_cost_is_unknown() -> None:
    (shown,) = usage_view("speech", "2026-11", [], [entry(cents_lost=None)])["preemptions"]
    assert (shown["preemptor"], shown["victim"], shown["usd_lost"]) == ("urgent", None, None)


def test_within_a_team_both_names_are_shown() -> None:
    (shown,) = usage_view("vision", "2026-11", [], [entry(preemptor_team="vision")])["preemptions"]
    assert (shown["preemptor"], shown["victim"]) == ("urgent", "slow")


def test_what_warm_starts_saved_stands_beside_what_warm_pools_cost() -> None:
    attempt = EndedAttempt(
        job="a",
        instances=2,
        usd_per_hour=Decimal(60),
        claimed_at=NOON,
        ended_at=NOON + timedelta(hours=1),
        trained=timedelta(minutes=59),
        startup_saved=timedelta(minutes=4),
    )
    line = line_of(attempt)
    assert (line.cents, line.warm_saved_cents) == (6000, 400), "the saving is no part of the cost"
    view = usage_view("t", "2026-11", [line, UsageLine(job="a", warm_saved_cents=50), UsageLine(job="b")])
    assert view["total"]["warm_saved_usd"] == view["jobs"][0]["warm_saved_usd"] == 4.5
    assert "warm_saved_usd" not in view["jobs"][1]
