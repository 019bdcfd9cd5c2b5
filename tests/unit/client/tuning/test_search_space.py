"""Ranges as scales from 0 to 1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster_client.tuning.search_space import Choice, NumberRange, Scaling, SearchSpace, parse_space

from tests.unit.client.tuning.requests import choices, numbers


def number(low: float, high: float, scaling: Scaling, *, is_integer: bool = False) -> NumberRange:
    return NumberRange(name="x", low=low, high=high, is_integer=is_integer, scaling=scaling)


@pytest.mark.parametrize(
    ("scale", "position", "value"),
    [
        pytest.param(number(0, 10, Scaling.LINEAR), 0.25, "2.5", id="linear"),
        pytest.param(number(0.01, 1, Scaling.LOGARITHMIC), 0.5, "0.1", id="logarithmic: the same factor"),
        pytest.param(number(0, 0.99, Scaling.REVERSE_LOGARITHMIC), 0.5, "0.9", id="reverse: dense at 1"),
        pytest.param(number(1, 4, Scaling.LINEAR, is_integer=True), 0.0, "1", id="the first integer"),
        pytest.param(number(1, 4, Scaling.LINEAR, is_integer=True), 0.26, "2", id="each has its share"),
        pytest.param(number(1, 4, Scaling.LINEAR, is_integer=True), 1.0, "4", id="the last integer"),
        pytest.param(number(3, 3, Scaling.LINEAR), 0.7, "3", id="a range of one value"),
    ],
)
def test_a_position_has_a_value(scale: NumberRange, position: float, value: str) -> None:
    assert float(scale.at(position)) == pytest.approx(float(value))
    assert "." not in scale.at(position) or not scale.is_integer


@given(
    scaling=st.sampled_from(Scaling),
    low=st.floats(0.001, 0.5),
    high=st.floats(0.5, 0.999),
    position=st.floats(0, 1),
    is_integer=st.booleans(),
)
def test_a_value_lies_in_its_range_and_leads_back_to_its_position(
    *, scaling: Scaling, low: float, high: float, position: float, is_integer: bool
) -> None:
    is_whole = is_integer and scaling is not Scaling.REVERSE_LOGARITHMIC
    least, most = (round(1000 * low), round(1000 * high)) if is_whole else (low, high)
    scale = number(least, most, scaling, is_integer=is_whole)
    value = scale.at(position)
    assert least <= float(value) <= most
    assert scale.at(scale.position(value)) == value or float(value) == pytest.approx(
        float(scale.at(scale.position(value)))
    )


def test_auto_is_logarithmic_for_a_wide_range_above_0_and_else_linear() -> None:
    ranges = numbers(wide=("0.001", "1", "Auto"), narrow=("0.01", "1", "Auto"), zero=("0", "1000", "Auto"))
    space, problems = parse_space(ranges, field="R")
    assert problems == []
    assert [one.scaling for one in space.ranges if isinstance(one, NumberRange)] == [
        Scaling.LOGARITHMIC,
        Scaling.LINEAR,
        Scaling.LINEAR,
    ]


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        pytest.param({}, "R: has no range; give at least one", id="none"),
        pytest.param(numbers(x=("1", "0", "Linear")), "MinValue 1 is above MaxValue 0", id="upside down"),
        pytest.param(numbers(x=("a", "0", "Linear")), "MinValue 'a' is not a number", id="no number"),
        pytest.param(numbers(x=("0", "inf", "Linear")), "MaxValue 'inf' is not a number", id="no end"),
        pytest.param(numbers(x=("0", "1", "Logarithmic")), "above 0", id="logarithm of 0"),
        pytest.param(numbers(x=("0", "1", "ReverseLogarithmic")), "without 1", id="reverse logarithm of 1"),
        pytest.param(
            numbers(x=("0", "1", "Linear")) | choices(x=["1"]), "two ranges of the name 'x'", id="twice"
        ),
        pytest.param(
            {"IntegerParameterRanges": [{"Name": "x", "MinValue": "0.5", "MaxValue": "2"}]},
            "0.5 to 2 are not integers",
            id="half an integer",
        ),
    ],
)
def test_what_is_no_range_is_named(ranges: dict[str, object], said: str) -> None:
    _, problems = parse_space(ranges, field="R")
    assert said in "\n".join(map(str, problems))


def test_combinations_are_all_those_of_the_choices() -> None:
    space = SearchSpace(
        ranges=(Choice(name="a", values=("1", "2")), Choice(name="b", values=("x", "y", "z")))
    )
    found = [tuple(one.values()) for one in space.combinations()]
    assert found[:4] == [("1", "x"), ("1", "y"), ("1", "z"), ("2", "x")]
    assert len(set(found)) == space.combination_count == 6
