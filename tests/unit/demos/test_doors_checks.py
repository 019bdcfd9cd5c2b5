"""The checks of `make demo-doors` pass on a door that showed everything, and fail on what is missing."""

from typing import Any

import pytest
from trainmaster_client.report import Report

from demos.doors import COURSE, STEPS, check

SCHEDULE = "arn:aws:sts::123456789012:assumed-role/schedule/schedule"
ANN = "arn:aws:iam::123456789012:user/ann"


def door(**changes: Any) -> dict[str, Any]:
    """Preempted after step 12, resumed there, and trained to its end."""
    lines = ["begins", *(f"step={one}" for one in range(1, 15)), "resumed from step=12"]
    return {
        "door": "cli",
        "exit_code": 0,
        "attempts": [{"status": "Stopped"}, {"status": "Completed"}],
        "statuses": [list(one) for one in COURSE],
        "log_lines": [*lines, *(f"step={one}" for one in range(13, 13 + STEPS))],
        "created": [{"by": SCHEDULE}, {"by": SCHEDULE}],
        **changes,
    }


def failures(one: dict[str, Any]) -> list[str]:
    report = Report(name="doors")
    report.facts |= {"doors": [one], "created": one["created"]}
    check(report)
    return [check.id for check in report.checks if not check.ok]


def test_a_door_that_showed_everything_passes() -> None:
    assert failures(door()) == []


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        pytest.param({"exit_code": None}, ["cli-ends-well"], id="its program did not end"),
        pytest.param(
            {"statuses": [*map(list, COURSE[:2]), list(COURSE[-1])]},
            ["cli-sees-it-wait-resume-and-complete"],
            id="it did not see its job wait again",
        ),
        pytest.param(
            {"statuses": [list(COURSE[0]), ["Stopped", "Stopped"], *map(list, COURSE)]},
            ["cli-sees-it-wait-resume-and-complete"],
            id="it saw the stop of an attempt as its job's",
        ),
        pytest.param(
            {"created": [{"by": SCHEDULE}, {"by": ANN}]},
            ["cli-started-by-schedule", "started-by-schedule-alone"],
            id="a person started an attempt",
        ),
        pytest.param(
            {"log_lines": [f"step={one}" for one in range(1, STEPS + 1)]},
            ["cli-resumed"],
            id="it began again",
        ),
        pytest.param({"log_lines": ["resumed from step=12", "step=13"]}, ["cli-log"], id="steps are missing"),
    ],
)
def test_what_is_missing_fails(changes: dict[str, Any], failed: list[str]) -> None:
    assert failures(door(**changes)) == failed
