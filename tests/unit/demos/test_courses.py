"""What any demo may be held to is computed from facts alone."""

from typing import Any

import pytest
from trainmaster_client.report import Report

from demos.stage.courses import (
    FOUR_JOBS,
    check_four_jobs,
    check_started_by_schedule,
    followed,
    has_followed,
    most_at_once,
)

SCHEDULE = "arn:aws:sts::123456789012:assumed-role/schedule/schedule"
ANN = "arn:aws:iam::123456789012:user/ann"
ENDS = (("job1", "completed"), ("job3", "completed"))


def failed(report: Report) -> list[str]:
    return [check.id for check in report.checks if not check.ok]


def test_a_course_is_followed_in_order_whatever_comes_in_between() -> None:
    assert followed("abc", "xaybzc") == ["a", "b", "c"]
    assert followed("abc", "acb") == ["a", "b"]
    assert has_followed("aba", "abba")
    assert not has_followed("aba", "aab")


def test_the_four_jobs_take_their_turns_and_end() -> None:
    report = Report("demo")
    check_four_jobs(report, [*FOUR_JOBS, *ENDS])
    assert failed(report) == []
    late = Report("demo")
    check_four_jobs(late, [step for step in FOUR_JOBS if step != ("job4", "running")])
    assert failed(late) == ["order", "ends"]


@pytest.mark.parametrize(
    ("callers", "wrong"),
    [
        pytest.param([SCHEDULE, SCHEDULE], [], id="by the function"),
        pytest.param([SCHEDULE, ANN], ["started-by-schedule-alone"], id="a person, too"),
        pytest.param([], ["started-by-schedule-alone"], id="by nobody"),
    ],
)
def test_only_the_schedule_starts_jobs(callers: list[str], wrong: list[str]) -> None:
    report = Report("demo")
    check_started_by_schedule(report, callers)
    assert failed(report) == wrong


def test_containers_alive_at_once_are_counted() -> None:
    def process(event: str, pid: int) -> dict[str, Any]:
        return {"kind": "process", "event": event, "pid": pid}

    assert most_at_once([process("start", 1), process("exit", 1), process("start", 2)]) == 1
    assert most_at_once([process("start", 1), {"kind": "call"}, process("start", 2)]) == 2
