import math

import pytest
from trainmaster_client.simulate.comparison.wording import change_text, later_text, points_text, time_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "0s"), (89, "89s"), (90, "2m"), (5399, "90m"), (5400, "1.5h"), (130_000, "1.5d")],
)
def test_a_time_has_one_unit(seconds: float | None, text: str) -> None:
    assert time_text(seconds) == text
    assert time_text(math.inf) == "never"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        pytest.param(100, 25, "75 % less", id="less"),
        pytest.param(100, 112, "12 % more", id="more"),
        pytest.param(100, 310, "3.1 times as much", id="several times"),
        pytest.param(100, 100.1, "same", id="as much"),
        pytest.param(0, 5, "more", id="more than nothing"),
        pytest.param(5, math.inf, "more", id="without end"),
        pytest.param(math.inf, 5, "less", id="an end at last"),
        pytest.param(None, 5, "", id="nothing to compare with"),
    ],
)
def test_a_change_has_a_direction_and_a_baseline(before: float | None, after: float, text: str) -> None:
    assert change_text(before, after) == text


def test_shares_change_by_points_and_starts_by_time() -> None:
    assert points_text(0.751, 0.777) == "2.6 points more"
    assert later_text(-7200) == "2.0h earlier"
    assert later_text(math.inf) == "never starts"
