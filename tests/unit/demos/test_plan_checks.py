"""What the demo of a training plan must have shown."""

from typing import Any

import pytest
from trainmaster_client.report import Report

from demos.plan import DRAIN_MINUTES, STEPS, check

PLAN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/spring"
LOSSES = [(step, 4.0 - step / 100) for step in range(1, STEPS + 1)]


def attempt(status: str, code: int, plan: str | None, losses: list[tuple[int, float]]) -> dict[str, Any]:
    return {"status": status, "exit_code": code, "plan": plan, "losses": losses}


def told(**changes: Any) -> Report:
    report = Report("plan")
    report.facts = {
        "plan": PLAN,
        "script": "plan",
        "attempts": [
            attempt("Stopped", 143, PLAN, LOSSES[:9]),
            attempt("Completed", 0, None, LOSSES[9:]),
        ],
        "undisturbed": LOSSES,
        "steps_lost": 0,
        "stopped_minutes_before_close": DRAIN_MINUTES - 0.5,
        "reasons": ["window", "completed"],
        "preemptions": 0,
        "described": {"status": "Expired", "in_use": 0},
        "unused": [{"instance_hours": 0.7}],
    } | changes
    check(report)
    return report


def wrong(report: Report) -> list[str]:
    return [check.id for check in report.checks if not check.ok]


def test_the_whole_story_is_ok() -> None:
    assert wrong(told()) == []


@pytest.mark.parametrize(
    ("changes", "check_id"),
    [
        pytest.param(
            {"attempts": [attempt("Completed", 0, PLAN, LOSSES)]}, "plans", id="it never left the plan"
        ),
        pytest.param({"reasons": ["preemption"]}, "cause", id="another cause"),
        pytest.param({"preemptions": 1}, "not-a-preemption", id="charged as a preemption"),
        pytest.param({"stopped_minutes_before_close": -1.0}, "stopped-in-time", id="after the close"),
        pytest.param({"described": {"status": "Active", "in_use": 1}}, "plan-is-free", id="still on it"),
        pytest.param({"steps_lost": 3}, "plan-steps-lost", id="lost steps"),
        pytest.param({"undisturbed": [(1, 9.0), *LOSSES[1:]]}, "plan-same-losses", id="another loss"),
        pytest.param({"unused": None}, "unused-hours", id="no unused hours shown"),
    ],
)
def test_what_went_wrong_is_named(changes: dict[str, Any], check_id: str) -> None:
    assert check_id in wrong(told(**changes))
