"""Which commitment of a Savings Plan would have saved most, in hours that are over."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.costs.prices import PriceTable
from trainmaster_client.advice.commitments import (
    PastUse,
    assess,
    best_commitment,
    hourly_usd,
    past_use,
    steady_base,
)

G5, M5 = "ml.g5.12xlarge", "ml.m5.large"
PRICES = PriceTable(overrides={G5: Decimal(10), M5: Decimal("0.1")})
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def state(used: float, *, capacity: float = 8, warm: float = 0) -> dict[str, float]:
    return {"used": used, "warm": warm, "capacity": capacity, "waiting": 0}


def point(
    hour: int, on_demand: dict[str, Any] | None = None, spot: dict[str, Any] | None = None
) -> dict[str, Any]:
    at = (BEGIN + timedelta(hours=hour)).isoformat().replace("+00:00", "Z")
    return {"at": at, "on-demand": on_demand or {}, "spot": spot or {}}


def past(*used: float, name: str = G5) -> PastUse:
    return past_use(point(hour, {name: state(count)}) for hour, count in enumerate(used))


@pytest.mark.parametrize(
    ("hourly", "discount", "covers", "saved", "use"),
    [
        # Ten hours at 20: 14 an hour are paid for what costs 20.
        pytest.param([20.0] * 10, "0.3", 20.0, 60.0, 1.0, id="even use is covered whole"),
        # Rank 3 of 10 is 10. Covered 10 x 10 = 100, of it used 2 x 0 + 8 x 10 = 80; paid 70.
        pytest.param(
            [0.0] * 2 + [10.0] * 4 + [30.0] * 4, "0.3", 10.0, 10.0, 0.8, id="the base, not the peak"
        ),
        # Rank 6 of 10 is 10, rank 7 is 30: at 60 % of discount 10 and 30 are equally good.
        pytest.param(
            [0.0] * 2 + [10.0] * 4 + [30.0] * 4, "0.6", 10.0, 40.0, 0.8, id="of equals the smallest"
        ),
        pytest.param([0.0] * 3 + [10.0] * 7, "0.3", 0.0, 0.0, 0.0, id="too many quiet hours: none"),
        pytest.param([0.0] * 2 + [10.0] * 8, "0.3", 10.0, 10.0, 0.8, id="one quiet hour fewer: some"),
        pytest.param([0.0] * 7 + [10.0] * 93, "0.07", 0.0, 0.0, 0.0, id="7 of 100 is not rounded up to 8"),
        pytest.param([4.0], "0.5", 4.0, 2.0, 1.0, id="a single hour"),
    ],
)
def test_the_best_commitment_by_hand(
    hourly: list[float], discount: str, covers: float, saved: float, use: float
) -> None:
    best = best_commitment(hourly, Decimal(discount))
    assert (best.covers, best.use) == (covers, use)
    assert best.saved == pytest.approx(saved)
    assert best.usd_per_hour == pytest.approx(covers * float(1 - Decimal(discount)))


def test_a_commitment_above_the_use_loses_what_is_not_used() -> None:
    much = assess([10.0, 10.0], Decimal("0.3"), covers=20.0)
    assert much.usd_per_hour == pytest.approx(14.0)
    assert (much.use, much.break_even_use) == (0.5, 0.7)
    assert much.saved == pytest.approx(20.0 - 28.0)


HOURS = st.lists(st.integers(0, 40).map(float), min_size=1, max_size=60)
PERCENTS = st.integers(1, 99).map(lambda percent: Decimal(percent) / 100)


@given(HOURS, PERCENTS)
def test_no_other_commitment_saves_more(hourly: list[float], discount: Decimal) -> None:
    best = best_commitment(hourly, discount)
    grid = [assess(hourly, discount, covers=half / 2) for half in range(85)]
    assert best.saved >= max(other.saved for other in grid) - 1e-9
    assert best.saved >= -1e-9


@given(HOURS, PERCENTS, st.integers(1, 80).map(lambda half: half / 2))
def test_a_commitment_pays_exactly_where_its_use_is_above_the_break_even(
    hourly: list[float], discount: Decimal, covers: float
) -> None:
    found = assess(hourly, discount, covers=covers)
    if abs(found.use - found.break_even_use) > 1e-9:
        assert (found.saved > 0) == (found.use > found.break_even_use)


def test_the_base_of_a_type_is_what_was_in_use_often_enough() -> None:
    use = past(*[0] * 2, *[2] * 17, *[6] * 6)
    (base,) = steady_base(use, Decimal("0.3"), PRICES)
    assert (base.instance_type, base.instances, base.capacity) == (G5, 2, 8)
    assert base.share_of_hours == 23 / 25
    assert base.mean == pytest.approx((2 * 17 + 6 * 6) / 25)


def test_parts_of_instances_are_rounded_down_to_tenths() -> None:
    (base,) = steady_base(past(1.97, 1.97, 2.3, 2.3), Decimal("0.25"), PRICES)
    assert (base.instances, base.share_of_hours) == (1.9, 1.0)
    (base,) = steady_base(past(2.3, 2.3), Decimal("0.5"), PRICES)
    assert base.instances == 2.3


def test_the_type_that_costs_most_comes_first_and_unused_ones_do_not_come() -> None:
    use = past_use([point(0, {M5: state(4), G5: state(1), "ml.c5.xlarge": state(0)})])
    assert [base.instance_type for base in steady_base(use, Decimal("0.5"), PRICES)] == [G5, M5]


def test_only_on_demand_use_counts_the_rest_is_named() -> None:
    use = past_use(
        [
            point(
                0,
                {G5: state(2, warm=1), "ml.x:later": state(1)},
                {G5: state(5)},
            )
            | {"plan": {"ml.p5.48xlarge": state(3)}},
            point(1, {M5: state(1)}),
        ]
    )
    assert list(use.by_type) == [G5, M5]
    assert use.by_type[M5].used == (0.0, 1.0)
    assert hourly_usd(use, PRICES) == pytest.approx((20.0, 0.1))
    assert use.left_out == {"spot": 5.0, "training plan": 3.0, "warm pool": 1.0}
    assert use.until == BEGIN + timedelta(hours=2)


def test_a_type_without_a_price_is_in_no_sum() -> None:
    use = past(3, name="ml.p9.48xlarge")
    assert hourly_usd(use, PRICES) == (0.0,)
    (base,) = steady_base(use, Decimal("0.5"), PRICES)
    assert (base.instances, base.usd_per_hour) == (3, None)


@pytest.mark.parametrize("hours", [[], [0, 2], [1, 0]], ids=["none", "a gap", "backwards"])
def test_points_that_are_not_hours_in_a_row_are_refused(hours: list[int]) -> None:
    with pytest.raises(ValueError, match="not hours that follow"):
        past_use(point(hour) for hour in hours)
