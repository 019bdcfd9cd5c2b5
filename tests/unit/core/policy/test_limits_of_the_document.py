"""Warm pools, limits, budgets, prices and spot waits of the policy document."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.errors import PolicyViolationError
from trainmaster.core.policy import AtLimit, Budget, Limits, WarmPool, parse_policy

P5 = "ml.p5.48xlarge"


def pool(**keys: Any) -> dict[str, Any]:
    return {"pools": [{"name": "p5", "capacity": {P5: 2}} | keys]}


def warm(**keys: Any) -> dict[str, Any]:
    return pool(warm_pool=keys)


def budget(value: object) -> dict[str, Any]:
    return {"teams": [{"name": "vision", "budget": value}]}


def test_warm_pools_and_limits_are_read() -> None:
    document = pool(
        warm_pool={"keep_alive": "10m", "retain": "5m", "max_idle": "1h"},
        limits={"max_waiting": 50, "max_submissions_per_minute": 5},
    )
    policy = parse_policy(document)
    (found,) = policy.pools
    assert found.warm_pool == WarmPool(
        keep_alive=timedelta(minutes=10), retain=timedelta(minutes=5), max_idle=timedelta(hours=1)
    )
    assert found.limits == Limits(max_waiting=50, max_submissions_per_minute=5)
    assert policy.warnings == ()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(None, None, id="none"),
        pytest.param(
            {"usd_per_month": 50000}, Budget(usd_per_month=Decimal(50000), at_limit=AtLimit.WAIT), id="waits"
        ),
        pytest.param(
            {"usd_per_month": 0.1, "at_limit": "spot"},
            Budget(usd_per_month=Decimal("0.1"), at_limit=AtLimit.SPOT),
            id="goes on with spot; the amount is exactly what was written",
        ),
    ],
)
def test_a_budget_is_read(written: object, expected: Budget | None) -> None:
    assert parse_policy(budget(written)).teams[0].budget == expected


def test_prices_are_exactly_what_was_written() -> None:
    policy = parse_policy({"prices": {P5: 98.32, "ml.g5.xlarge": 2}})
    assert policy.prices == {P5: Decimal("98.32"), "ml.g5.xlarge": Decimal(2)}
    assert policy.warnings == ()


def test_spot_jobs_of_the_planner_wait_six_hours_unless_told_otherwise() -> None:
    assert parse_policy({}).spot_max_wait == timedelta(hours=6)
    policy = parse_policy({"spot": {"max_wait": "90m"}})
    assert policy.spot_max_wait == timedelta(minutes=90)
    assert policy.warnings == ()


KEEP_ALIVE = "pools[0].warm_pool.keep_alive"
RETAIN = "pools[0].warm_pool.retain"
WAITING = "pools[0].limits.max_waiting"
RATE = "pools[0].limits.max_submissions_per_minute"
USD = "teams[0].budget.usd_per_month"
AT_LIMIT = "teams[0].budget.at_limit"
USD_BOUNDS = "must be an amount in USD, 0.01 to 1000000000, not"
PRICE = f"prices.{P5}"
PRICE_BOUNDS = "must be an amount in USD, 0.0001 to 1000000, not"


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        pytest.param(warm(keep_alive="6h", max_idle="6h"), None, "", id="six hours is SageMaker's maximum"),
        pytest.param(
            warm(keep_alive="21601s", max_idle="7h"),
            KEEP_ALIVE,
            'must be between 0s and 6h, not "21601s"',
            id="more than SageMaker takes",
        ),
        pytest.param(warm(keep_alive=600), KEEP_ALIVE, "durations need a unit", id="seconds without a unit"),
        pytest.param(
            warm(keep_alive="-5m"), KEEP_ALIVE, 'is not a duration: "-5m"', id="no negative durations"
        ),
        pytest.param(warm(keep_alive="5m", retain="30m"), None, "", id="retained as long as any"),
        pytest.param(
            warm(keep_alive="5m", retain="31m"), RETAIN, "is longer than max_idle, 30m: 31m", id="and longer"
        ),
        pytest.param(
            warm(max_idle="29d"), "pools[0].warm_pool.max_idle",
            'must be between 0s and 28d, not "29d"', id="longer than a warm pool lives",
        ),
        pytest.param(warm(max_idel="5m"), "pools[0].warm_pool.max_idel", "unknown key", id="misspelt"),
        pytest.param(
            pool(limits={"max_waiting": 0}),
            WAITING, "must be a whole number, 1 to 1000000, not 0", id="a queue that nobody may enter",
        ),
        pytest.param(
            pool(limits={"max_submissions_per_minute": 0}),
            RATE, "must be a whole number, 1 to 1000000, not 0", id="a rate of nothing",
        ),
        pytest.param(pool(limits={"waiting": 1}), "pools[0].limits.waiting", "unknown key", id="unknown"),
        pytest.param(pool(limits=5), "pools[0].limits", "must be a mapping, not 5", id="a bare limit"),
        pytest.param(budget({}), USD, "is missing", id="a budget of nothing"),
        pytest.param(budget({"usd_per_month": 0}), USD, f"{USD_BOUNDS} 0", id="no money at all"),
        pytest.param(budget({"usd_per_month": -5}), USD, f"{USD_BOUNDS} -5", id="less than nothing"),
        pytest.param(budget({"usd_per_month": "5"}), USD, f'{USD_BOUNDS} "5"', id="money as text"),
        pytest.param(budget({"usd_per_month": True}), USD, f"{USD_BOUNDS} true", id="true is not one dollar"),
        pytest.param(
            budget({"usd_per_month": float("nan")}), USD, f"{USD_BOUNDS} NaN", id="not a number"
        ),
        pytest.param(
            budget({"usd_per_month": 10**5000}), USD, f"{USD_BOUNDS} a number that large", id="absurd"
        ),
        pytest.param(
            budget({"usd_per_month": 1, "at_limit": "stop"}),
            AT_LIMIT, 'must be wait or spot, not "stop"', id="no such reaction",
        ),
        pytest.param(
            budget({"usd_per_month": 1, "at_limit": []}),
            AT_LIMIT, "must be wait or spot, not a list", id="a list of reactions",
        ),
        pytest.param(budget({"usd_per_month": 1, "usd": 1}), "teams[0].budget.usd", "unknown key", id="usd"),
        pytest.param({"prices": {P5: 0}}, PRICE, f"{PRICE_BOUNDS} 0", id="nothing is free"),
        pytest.param({"prices": {P5: -1.5}}, PRICE, f"{PRICE_BOUNDS} -1.5", id="nobody pays us"),
        pytest.param({"prices": {P5: "98.32"}}, PRICE, f'{PRICE_BOUNDS} "98.32"', id="a price as text"),
        pytest.param({"prices": {P5: None}}, PRICE, f"{PRICE_BOUNDS} null", id="a type without price"),
        pytest.param({"prices": {P5: float("inf")}}, PRICE, f"{PRICE_BOUNDS} Infinity", id="priceless"),
        pytest.param(
            {"prices": {"p5.48xlarge": 1}},
            "prices.p5.48xlarge", 'is not an instance type: "p5.48xlarge"', id="an EC2 type",
        ),
        pytest.param({"prices": []}, "prices", "must be a mapping, not a list", id="prices are by type"),
        pytest.param({"spot": {"max_wait": 6}}, "spot.max_wait", "durations need a unit", id="hours of what"),
        pytest.param(
            {"spot": {"max_wait": "29d"}},
            "spot.max_wait", 'must be between 0s and 28d, not "29d"', id="longer than any job runs",
        ),
        pytest.param({"spot": {"max_weight": "1h"}}, "spot.max_weight", "unknown key", id="a misspelt wait"),
    ],
)  # fmt: skip
def test_a_value_without_sense_is_refused(document: object, field: str | None, message: str) -> None:
    if field is None:
        assert parse_policy(document).warnings == ()
        return
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy(document)
    (error,) = caught.value.errors
    assert (error.field, error.message) == (field, message)
    assert error.hint


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        pytest.param(
            warm(keep_alive="1h"),
            KEEP_ALIVE,
            "is longer than max_idle: after 30m idle instances are released anyway",
            id="kept alive in vain",
        ),
        pytest.param(
            warm(keep_alive="0s", retain="5m"),
            RETAIN,
            "has no effect: without keep_alive there are no warm pools",
            id="nothing to retain",
        ),
    ],
)
def test_what_does_less_than_it_says_gets_a_warning(document: object, field: str, message: str) -> None:
    (warning,) = parse_policy(document).warnings
    assert (warning.field, warning.message) == (field, message)
    assert warning.hint
