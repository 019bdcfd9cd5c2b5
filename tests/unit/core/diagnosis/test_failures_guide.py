"""The guide to failures says what the code does."""

import pytest
from trainmaster.core.diagnosis import FailureEvidence, diagnose
from trainmaster.core.diagnosis.diagnosis import ADVICE
from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.policy.governance import Recovery

from tests.markdown import codes, table, text_of

ROWS = {
    codes(row[0])[0]: row
    for row in table(text_of("docs/failures.md"), "class", "example lines", "advice", "retried")
}


def test_every_class_has_a_row_with_its_advice() -> None:
    assert {name: row[2] for name, row in ROWS.items()} == {str(one): ADVICE[one] for one in FailureClass}


def test_the_classes_that_are_tried_again_are_the_default_of_the_policy() -> None:
    assert {name for name, row in ROWS.items() if row[3] == "yes"} == set(Recovery().retry_classes)
    assert {row[3] for row in ROWS.values()} == {"yes", "no"}


@pytest.mark.parametrize("name", ROWS)
def test_the_lines_of_a_row_are_of_its_class(name: str) -> None:
    lines = codes(ROWS[name][1])
    assert lines or name == "unknown"
    for line in lines:
        assert diagnose(FailureEvidence(failure_reason=line)).failure_class == name, line
