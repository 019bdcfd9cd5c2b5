"""From data points to the state of an alarm; the tables of the CloudWatch User Guide are cases here."""

from datetime import UTC, datetime, timedelta

import pytest

from local.cloudwatch.evaluation import DataPoint, Missing, StateValue, Threshold, Verdict, judge

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEPT = "kept"
INSUFFICIENT = "INSUFFICIENT_DATA"
VALUES = {"0": 0.0, "X": 9.0, "-": None}


def points(text: str) -> list[DataPoint]:
    """0 does not breach, X does, - is missing; the newest is the last one."""
    return [
        DataPoint(start=NOON + timedelta(minutes=5 * place), value=VALUES[mark])
        for place, mark in enumerate(text)
    ]


def threshold(missing: Missing, *, to_alarm: int = 3, comparison: str = "GreaterThanThreshold") -> Threshold:
    return Threshold(comparison=comparison, value=5.0, evaluated=3, to_alarm=to_alarm, missing=missing)


def states(text: str, *, to_alarm: int) -> tuple[str, ...]:
    """Under each way to treat missing data, in the order of the guide's columns."""
    columns = (Missing.MISSING, Missing.IGNORE, Missing.BREACHING, Missing.NOT_BREACHING)
    verdicts = [judge(points(text), threshold(one, to_alarm=to_alarm)) for one in columns]
    return tuple(KEPT if verdict is None else verdict.state.value for verdict in verdicts)


@pytest.mark.parametrize(
    ("text", "to_alarm", "expected"),
    [
        ("0-X-X", 3, ("OK", "OK", "OK", "OK")),
        ("0----", 3, ("OK", "OK", "OK", "OK")),
        ("-----", 3, (INSUFFICIENT, KEPT, "ALARM", "OK")),
        ("0XX-X", 3, ("ALARM", "ALARM", "ALARM", "ALARM")),
        ("----X", 3, (INSUFFICIENT, KEPT, "ALARM", "OK")),
        ("X----", 3, ("ALARM", KEPT, "ALARM", "OK")),
        ("--X--", 3, ("ALARM", KEPT, "ALARM", "OK")),
        ("0-X-X", 2, ("ALARM", "ALARM", "ALARM", "ALARM")),
        ("00X0X", 2, ("ALARM", "ALARM", "ALARM", "ALARM")),
        ("0-X--", 2, ("OK", "OK", "ALARM", "OK")),
        ("----0", 2, ("OK", "OK", "ALARM", "OK")),
        ("----X", 2, (INSUFFICIENT, KEPT, "ALARM", "OK")),
        ("---X-", 2, ("ALARM", KEPT, "ALARM", "OK")),
    ],
)
def test_missing_data_is_treated_as_the_user_guide_says(
    text: str, to_alarm: int, expected: tuple[str, ...]
) -> None:
    assert states(text, to_alarm=to_alarm) == expected


@pytest.mark.parametrize(
    ("comparison", "value", "breaches"),
    [
        ("GreaterThanThreshold", 5.0, False),
        ("GreaterThanOrEqualToThreshold", 5.0, True),
        ("LessThanThreshold", 5.0, False),
        ("LessThanOrEqualToThreshold", 5.0, True),
        ("LessThanThreshold", 4.9, True),
        ("GreaterThanThreshold", 5.1, True),
    ],
)
def test_a_point_is_compared_with_the_threshold(comparison: str, value: float, breaches: bool) -> None:  # noqa: FBT001
    found = judge([DataPoint(start=NOON, value=value)] * 3, threshold(Missing.MISSING, comparison=comparison))
    assert found is not None
    assert found.state == ("ALARM" if breaches else "OK")


@pytest.mark.parametrize(
    ("text", "missing", "expected"),
    [
        pytest.param(
            "0XXX",
            Missing.MISSING,
            Verdict(
                state=StateValue.ALARM,
                reason="Threshold Crossed: 3 out of the last 3 datapoints [9.0 (01/01/26 12:15:00), "
                "9.0 (01/01/26 12:10:00), 9.0 (01/01/26 12:05:00)] were greater than the threshold (5.0) "
                "(minimum 3 datapoints for OK -> ALARM transition).",
            ),
            id="an alarm names the points that breach",
        ),
        pytest.param(
            "XX0",
            Missing.MISSING,
            Verdict(
                state=StateValue.OK,
                reason="Threshold Crossed: 1 out of the last 3 datapoints [0.0 (01/01/26 12:10:00)] was not "
                "greater than the threshold (5.0) (minimum 1 datapoint for ALARM -> OK transition).",
            ),
            id="OK names those that do not",
        ),
        pytest.param(
            "---",
            Missing.NOT_BREACHING,
            Verdict(
                state=StateValue.OK,
                reason="Threshold Crossed: no datapoints were received for 3 periods and 3 missing "
                "datapoints were treated as [NonBreaching].",
            ),
            id="missing ones are counted",
        ),
        pytest.param(
            "--",
            Missing.MISSING,
            Verdict(
                state=StateValue.INSUFFICIENT_DATA,
                reason="Insufficient Data: 3 datapoints were unknown.",
            ),
            id="nothing is known",
        ),
    ],
)
def test_the_reason_is_in_the_words_of_cloudwatch(text: str, missing: Missing, expected: Verdict) -> None:
    assert judge(points(text), threshold(missing)) == expected
