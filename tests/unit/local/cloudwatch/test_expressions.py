"""Metric math: what it gives, and that nothing unknown passes."""

import pytest

from local.cloudwatch.metric_math import ExpressionError, Kind, Point, compute, kind_of, parse, references

POINTS: dict[str, Point] = {"m0": 8.0, "m1": 2.0, "zero": 0.0, "gone": None}
KINDS = dict.fromkeys(POINTS, Kind.SERIES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m0", 8.0),
        ("m0 / 4", 2.0),
        ("m0 - m1 - 1", 5.0),
        ("m0 - (m1 - 1)", 7.0),
        ("1 + m1 * 3", 7.0),
        ("m0 / m1 / 2", 2.0),
        ("-m1 + 0.5", -1.5),
        ("m0 / (m1 - 2)", None),
        ("gone + 1", None),
        ("FILL(gone, 400)", 400.0),
        ("FILL(gone, -1)", -1.0),
        ("FILL(m0, 400)", 8.0),
        ("MAX([m0, m1])", 8.0),
        ("MIN([m0, m1])", 2.0),
        ("AVG([m0, m1])", 5.0),
        ("SUM([m0, m1])", 10.0),
        ("MAX([m1, gone])", 2.0),
        ("MIN([m0, zero])", 0.0),
        ("MAX([gone])", None),
        ("MAX([FILL(m1, 100), FILL(gone, 100)]) / 4", 25.0),
        ("MAX(FILL([m1, gone], 100))", 100.0),
        ("MIN([m0, m1] / 2)", 1.0),
        ("MAX([m0/4,\n  m1/1])", 2.0),
    ],
)
def test_an_expression_gives_a_value_or_nothing(text: str, expected: Point) -> None:
    node = parse(text)
    assert kind_of(node, KINDS) is Kind.SERIES
    assert compute(node, POINTS) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "ends too early"),
        ("m0 +", "ends too early"),
        ("m0 m1", "'m1' was not expected"),
        ("(m0", "')' was expected"),
        ("m0 > 1", "'>' was not expected"),
        ("IF(m0, 1)", "does not know the function IF"),
        ("RATE(m0)", "does not know the function RATE"),
        ("Metric", "begin with a lower case letter"),
        ("other", "no metric or expression with the id 'other'"),
        ("MAX(m0)", "of an array"),
        ("MAX([m0], [m1])", "takes one array"),
        ("MAX([1, m0])", "time series alone"),
        ("[m0] + [m1]", "does not combine two arrays"),
        ("FILL(m0, REPEAT)", "begin with a lower case letter"),
        ("FILL(m0, m1)", "FILL with a time series and a number"),
        ("FILL(1, 2)", "FILL takes a time series"),
    ],
)
def test_what_it_does_not_know_is_an_error(text: str, says: str) -> None:
    with pytest.raises(ExpressionError, match=says.replace("(", r"\(").replace(")", r"\)")):
        kind_of(parse(text), KINDS)


@pytest.mark.parametrize(
    ("text", "kind"), [("1 + 2", Kind.SCALAR), ("[m0, m1]", Kind.ARRAY), ("[m0, m1] * m0", Kind.ARRAY)]
)
def test_a_number_and_an_array_are_no_time_series(text: str, kind: Kind) -> None:
    assert kind_of(parse(text), KINDS) is kind


def test_an_expression_names_what_it_needs() -> None:
    assert references(parse("MAX([FILL(m0, 1), m1]) / gone + 2")) == {"m0", "m1", "gone"}
