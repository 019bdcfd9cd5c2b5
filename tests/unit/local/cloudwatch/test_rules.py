"""Rules of composite alarms."""

import pytest

from local.cloudwatch.rules import RuleError, alarms_of, holds, parse

STATES = {"a": "ALARM", "b": "OK", "c.0": "INSUFFICIENT_DATA"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRUE", True),
        ("FALSE", False),
        ('ALARM("a")', True),
        ("ALARM(a)", True),
        ("ALARM(b)", False),
        ("OK(b)", True),
        ('INSUFFICIENT_DATA("c.0")', True),
        ('ALARM("arn:aws:cloudwatch:us-east-1:111122223333:alarm:a")', True),
        ("ALARM(gone)", False),
        ("NOT ALARM(b)", True),
        ("ALARM(a) AND OK(b)", True),
        ("ALARM(a) AND ALARM(b)", False),
        ("ALARM(a) OR ALARM(b)", True),
        pytest.param("ALARM(a) OR ALARM(b) AND ALARM(b)", True, id="AND binds more than OR"),
        ("(ALARM(a) OR ALARM(b)) AND ALARM(b)", False),
        pytest.param("NOT ALARM(a) OR ALARM(a)", True, id="NOT binds most"),
        ("NOT (ALARM(a) OR ALARM(a))", False),
    ],
)
def test_a_rule_holds_under_the_states_of_its_alarms(text: str, expected: bool) -> None:  # noqa: FBT001
    assert holds(parse(text), STATES) is expected


@pytest.mark.parametrize(
    "text", ["", "ALARM", "ALARM(a", "ALARM(a) ALARM(b)", "alarm(a)", "ALARM(a) AND", ")", '"']
)
def test_a_rule_that_makes_no_sense_is_an_error(text: str) -> None:
    with pytest.raises(RuleError):
        parse(text)


def test_a_rule_names_its_alarms_once() -> None:
    text = 'ALARM(a) AND (OK("b") OR NOT ALARM("arn:aws:cloudwatch:us-east-1:111122223333:alarm:a"))'
    assert alarms_of(parse(text)) == ("a", "b")
