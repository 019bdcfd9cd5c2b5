"""Prices, and what a time costs."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.costs.ledger import Cause
from trainmaster.core.costs.prices import FAMILIES, USD_PER_HOUR, PriceTable, cost_cents, usd_text
from trainmaster.core.jobs.instances import Capacity, CapacityType

from tests.markdown import table, text_of

SHIPPED = PriceTable()
P5 = Capacity("ml.p5.48xlarge")
G5 = Capacity("ml.g5.xlarge")
UNKNOWN = Capacity("ml.made-up.xlarge")


@pytest.mark.parametrize(
    ("instance_type", "usd"),
    [("ml.m5.xlarge", "0.23"), ("ml.g5.12xlarge", "7.09"), ("ml.p5.48xlarge", "63.296")],
)
def test_a_shipped_price_is_exact(instance_type: str, usd: str) -> None:
    assert SHIPPED.usd_per_hour(instance_type) == Decimal(usd)


def test_a_type_that_nobody_priced_has_no_price() -> None:
    assert SHIPPED.usd_per_hour("ml.made-up.xlarge") is None


def test_the_price_of_the_policy_goes_before_the_shipped_one_and_fills_gaps() -> None:
    prices = PriceTable(overrides={"ml.m5.xlarge": Decimal("0.19"), "ml.made-up.xlarge": Decimal(0)})
    assert prices.usd_per_hour("ml.m5.xlarge") == Decimal("0.19")
    assert prices.usd_per_hour("ml.made-up.xlarge") == Decimal(0)
    assert prices.usd_per_hour("ml.m5.large") == Decimal("0.115")


def test_all_instances_of_a_vector_are_paid_for() -> None:
    assert SHIPPED.vector_usd_per_hour({P5: 2, G5: 3}) == Decimal("130.816")


def test_spot_has_the_price_of_on_demand() -> None:
    assert SHIPPED.vector_usd_per_hour({Capacity("ml.g5.xlarge", CapacityType.SPOT): 2}) == Decimal("2.816")


def test_one_unknown_type_makes_the_price_of_all_unknown() -> None:
    assert SHIPPED.vector_usd_per_hour({P5: 2, UNKNOWN: 1}) is None


@pytest.mark.parametrize(
    ("vectors", "usd"),
    [
        pytest.param([{G5: 4}, {P5: 1}, {G5: 1}], Decimal("63.296"), id="the dearest counts"),
        pytest.param([{P5: 1}, {UNKNOWN: 1}], None, id="one without a price may be the dearest"),
        pytest.param([], None, id="nothing to choose from has no price"),
    ],
)
def test_of_several_forms_the_dearest_is_reserved(
    vectors: list[dict[Capacity, int]], usd: Decimal | None
) -> None:
    assert SHIPPED.dearest_usd_per_hour(vectors) == usd


def test_the_types_without_a_price_are_named_once_and_sorted() -> None:
    types = ["ml.z9.xlarge", "ml.p5.48xlarge", "ml.a9.xlarge", "ml.z9.xlarge"]
    assert SHIPPED.unpriced(types) == ("ml.a9.xlarge", "ml.z9.xlarge")


@pytest.mark.parametrize(
    ("usd_per_hour", "time", "cents"),
    [
        pytest.param("63.296", timedelta(hours=1), 6330, id="rounded up to the cent"),
        pytest.param("126.592", timedelta(hours=24), 303_821, id="two instances for a day"),
        pytest.param("3", timedelta(seconds=2400), 200, id="two thirds of an hour are not rounded up a cent"),
        pytest.param("0.23", timedelta(seconds=1), 1, id="a second costs a cent"),
        pytest.param("0.23", timedelta(), 0, id="no time costs nothing"),
        pytest.param("0", timedelta(hours=9), 0, id="what the policy calls free is free"),
    ],
)
def test_what_a_time_costs(usd_per_hour: str, time: timedelta, cents: int) -> None:
    assert cost_cents(Decimal(usd_per_hour), time) == cents


def test_an_unknown_price_is_an_unknown_cost_even_of_no_time() -> None:
    assert cost_cents(None, timedelta(hours=1)) is None
    assert cost_cents(None, timedelta()) is None


def test_a_negative_time_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        cost_cents(Decimal(1), timedelta(seconds=-1))


@given(cents=st.integers(0, 100_000), count=st.integers(1, 2000), seconds=st.integers(0, 28 * 86_400))
def test_the_cost_is_the_exact_product_rounded_up(cents: int, count: int, seconds: int) -> None:
    exact_times_3600 = cents * count * seconds
    cost = cost_cents(Decimal(cents) / 100 * count, timedelta(seconds=seconds))
    assert cost == -(-exact_times_3600 // 3600)


@pytest.mark.parametrize(
    ("cents", "text"), [(0, "$0.00"), (5, "$0.05"), (123_450, "$1,234.50"), (5_000_000_00, "$5,000,000.00")]
)
def test_money_in_sentences(cents: int, text: str) -> None:
    assert usd_text(cents) == text


def test_every_shipped_price_is_above_nothing_and_listed_once() -> None:
    assert all(usd > 0 for usd in USD_PER_HOUR.values())
    assert len(USD_PER_HOUR) == sum(len(family.prices) for family in FAMILIES)


def test_the_guide_shows_every_shipped_price_with_its_age_and_source() -> None:
    rows = table(text_of("docs/costs.md"), "family", "USD per instance-hour", "as of", "source", "doubt")
    assert rows == [
        [
            f"`{family.name}`",
            ", ".join(f"{size} {usd}" for size, usd in family.prices.items()),
            family.as_of,
            family.source,
            family.doubt,
        ]
        for family in FAMILIES
    ]


def test_the_guide_names_every_cause() -> None:
    rows = table(text_of("docs/costs.md"), "cause", "means")
    assert [row[0].strip("`") for row in rows] == [str(cause) for cause in Cause]
