"""The checks of `make demo-scripts` pass on a script that was resumed, and fail on what is missing."""

from typing import Any

import pytest
from trainmaster_client.report import Report

from demos.scripts.checks import check, steps_lost
from demos.scripts.story import losses_of

STEPS = 20
LOSSES = [[str(step), f"{1 / step!r}"] for step in range(1, STEPS + 1)]


def script(first: list[list[str]], second: list[list[str]], *, exit_code: int = 143) -> dict[str, Any]:
    return {
        "script": "hf",
        "attempts": [
            {"status": "Stopped", "exit_code": exit_code, "losses": first},
            {"status": "Completed", "exit_code": 0, "losses": second},
        ],
        "undisturbed": LOSSES,
    }


def failures(one: dict[str, Any]) -> list[str]:
    report = Report(name="scripts")
    report.facts["scripts"] = [one]
    check(report, steps=STEPS)
    return [check.id for check in report.checks if not check.ok]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_script_that_lost_at_most_the_step_in_flight_passes(lost: int) -> None:
    one = script(LOSSES[:12], LOSSES[12 - lost :])
    assert failures(one) == []
    assert one["steps_lost"] == lost


@pytest.mark.parametrize(
    ("one", "failed"),
    [
        pytest.param(script(LOSSES[:12], LOSSES[10:]), ["hf-steps-lost"], id="two steps lost"),
        pytest.param(script(LOSSES[:12], LOSSES), ["hf-steps-lost"], id="from scratch"),
        pytest.param(
            script(LOSSES[:12], []), ["hf-steps-lost", "hf-same-losses"], id="it trained nothing afterwards"
        ),
        pytest.param(script(LOSSES[:12], LOSSES[12:], exit_code=137), ["hf-ends"], id="it was killed"),
        pytest.param(
            script(LOSSES[:12], [["13", "0.07692307692307694"], *LOSSES[13:]]),
            ["hf-same-losses"],
            id="a loss differs in its last digit",
        ),
    ],
)
def test_what_is_missing_fails_its_check(one: dict[str, Any], failed: list[str]) -> None:
    assert failures(one) == failed


def test_a_job_that_was_started_twice_in_vain_has_lost_nothing_by_it() -> None:
    assert steps_lost([{"losses": LOSSES[:3]}, {"losses": []}, {"losses": LOSSES[3:]}]) == 0


def test_losses_are_read_as_they_were_printed() -> None:
    lines = ["resuming", "step=2 loss=0.30000000000000004", "{'loss': '0.3'}"]
    assert losses_of(lines) == [["2", "0.30000000000000004"]]
