"""A report of account-check beside the harsh world: the world may not be kinder than AWS was."""

from typing import Any

import pytest
from trainmaster_client.report import Report

from local.worlds import VALUES
from tests.account_check.golden import AS_HARSH, compare


def verdicts(measured: dict[str, Any]) -> dict[str, bool | None]:
    report = Report("harsh-world")
    compare(report, {"events": 200, **measured})
    return {check.id: check.ok for check in report.checks}


def test_what_nobody_measured_stays_as_it_is_known() -> None:
    assert set(verdicts({}).values()) == {None}
    assert set(verdicts({})) == {value.name for value in VALUES}


@pytest.mark.parametrize(
    ("name", "seen", "holds"),
    [
        pytest.param("rates", {"DescribeTrainingJob": 9.0}, True, id="an account that allows more"),
        pytest.param("rates", {"DescribeTrainingJob": 0.5}, False, id="an account that allows less"),
        pytest.param("latency_seconds", {"p50": 0.1, "p99": 1.0}, True, id="quicker"),
        pytest.param("latency_seconds", {"p50": 0.1, "p99": 9.0}, False, id="slower at the end"),
        pytest.param("read_delay_seconds", 0.0, True, id="read at once"),
        pytest.param("read_delay_seconds", 30.0, False, id="read late"),
        pytest.param("event_delay_seconds", [0.0, 2.0], True, id="events at once"),
        pytest.param("event_delay_seconds", [0.0, 900.0], False, id="events late"),
        pytest.param("events_doubled", 0.5, False, id="more doubled than in the world"),
        pytest.param("max_instances_per_job", 20, True, id="the same limit"),
        pytest.param("max_instances_per_job", 10, False, id="a lower limit"),
        pytest.param("pending_end", "Stopped/Stopped", True, id="a dialect that is played"),
        pytest.param("pending_end", "Deleting/Deleting", False, id="a dialect nobody thought of"),
    ],
)
def test_the_world_is_as_harsh_as_what_was_measured(name: str, seen: Any, *, holds: bool) -> None:
    assert verdicts({name: seen})[name] is holds


def test_a_share_of_a_few_events_says_little() -> None:
    report = Report("harsh-world")
    compare(report, {"events": 7, "events_without_tags": 0.43})
    assert [check.ok for check in report.checks if check.id == "events_without_tags"] == [True]


def test_every_value_but_those_of_each_account_can_be_compared() -> None:
    assert {value.name for value in VALUES} - set(AS_HARSH) == {"quotas", "missing_types"}
