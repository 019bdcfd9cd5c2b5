"""What the demo makes of its facts."""

from typing import Any

import pytest
from trainmaster_client.report import Report

from demos.main_job import check, steps_lost
from demos.stage.courses import FOUR_JOBS

Document = dict[str, Any]


def attempt(
    number: int, first: int, last: int, *, resumed: int | None = None, job: str = "job1-x"
) -> Document:
    return {
        "job": job,
        "attempt": number,
        "status": "Completed",
        "first_step": first,
        "last_step": last,
        "resumed_from": None if resumed is None else {"step": resumed, "sha256": "aa", "sha256_read": "aa"},
        "losses": [[step, 5.0 - step / 100] for step in range(first, last + 1)],
    }


def facts(**changes: Any) -> Document:
    found = {
        "transitions": [{"job": f"{job}-x", "to": to} for job, to in FOUR_JOBS]
        + [{"job": f"{job}-x", "to": "completed"} for job in ("job1", "job3")],
        "attempts": [attempt(0, 1, 23), attempt(1, 24, 30, resumed=23)],
        "steps_lost": 0,
        "most_at_once": 2,
        "reference": {"losses": [[step, 5.0 - step / 100] for step in range(1, 31)]},
        "script_mode": {"steps_lost": 7, "interval": 10},
    }
    return found | changes


def failed(facts: Document) -> set[str]:
    report = Report("demo", facts=facts)
    check(report, capacity=2)
    return {one.id for one in report.checks if not one.ok}


def test_the_demo_as_it_should_be_passes() -> None:
    assert failed(facts()) == set()


@pytest.mark.parametrize(
    ("changes", "check_id"),
    [
        pytest.param({"steps_lost": 1}, "steps-lost", id="launch.py lost a step"),
        pytest.param({"steps_lost": None}, "steps-lost", id="job1 did not resume"),
        pytest.param(
            {"script_mode": {"steps_lost": 11, "interval": 10}},
            "script-mode-steps-lost",
            id="script mode lost more than an interval",
        ),
        pytest.param(
            {"script_mode": {"steps_lost": None, "interval": 10}},
            "script-mode-steps-lost",
            id="the job in script mode did not resume",
        ),
        pytest.param({"most_at_once": 3}, "capacity", id="three at once"),
        pytest.param(
            {"reference": {"losses": [[step, 5.1] for step in range(1, 31)]}},
            "same-losses",
            id="other losses than nobody's interruption gives",
        ),
    ],
)
def test_each_check_fails_of_what_it_is_about(changes: Document, check_id: str) -> None:
    assert failed(facts(**changes)) == {check_id}


@pytest.mark.parametrize(
    ("made", "lost"),
    [
        pytest.param([attempt(0, 1, 23), attempt(1, 24, 30, resumed=23)], 0, id="it saved before it left"),
        pytest.param([attempt(0, 1, 27), attempt(1, 21, 30, resumed=20)], 7, id="back to a checkpoint"),
        pytest.param([attempt(0, 1, 30)], None, id="it was never preempted"),
        pytest.param([attempt(0, 1, 27), attempt(1, 1, 30)], None, id="it began from scratch"),
    ],
)
def test_steps_lost(made: list[Document], lost: int | None) -> None:
    assert steps_lost(made) == lost
