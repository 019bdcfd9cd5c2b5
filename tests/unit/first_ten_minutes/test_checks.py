"""A beginning is judged by its facts: bytes and CPU seconds anywhere, the time of day on a quiet machine."""

from typing import Any

import pytest
from trainmaster_client.report import Report

from tests.first_ten_minutes.checks import LIMITS, check

MACHINE = {"load": 0.1, "cores": [0, 1]}


def step(**changed: Any) -> dict[str, Any]:
    return {
        "name": "make setup",
        "seconds": 100.0,
        "cpu_seconds": 60.0,
        "fetched_bytes": 1000,
        "written_bytes": 2000,
    } | changed


def facts(*steps: dict[str, Any], **changed: Any) -> dict[str, Any]:
    job = {"name": "job1", "state": "running"}
    return {
        "steps": list(steps or [step()]),
        "cpu_seconds_of_the_twin": 10.0,
        "others_share": 0.0,
        "queues": [[job | {"state": "pending"}], [job]],
        "fit": ["Queued job1.", "step=1"],
        "afterwards": [job | {"state": "completed"}],
    } | changed


def judged(found: dict[str, Any], machine: dict[str, Any] = MACHINE, way: str = "wheel") -> Report:
    report = Report("first", argv=())
    report.facts |= {"machine": machine, way: found}
    check(report, way)
    return report


def outcomes(report: Report) -> dict[str, bool | None]:
    return {one.id.removeprefix("wheel-"): one.ok for one in report.checks}


def test_a_quick_and_small_beginning_passes_every_check() -> None:
    report = judged(facts())
    assert set(outcomes(report).values()) == {True}
    assert report.ok


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        pytest.param(
            {"fetched_bytes": LIMITS["wheel"]["fetched_bytes"] + 1}, "fetched_bytes", id="a package more"
        ),
        pytest.param(
            {"written_bytes": LIMITS["wheel"]["written_bytes"] + 1}, "written_bytes", id="files more"
        ),
        pytest.param(
            {"cpu_seconds": LIMITS["wheel"]["cpu_seconds"] - 9}, "cpu_seconds", id="work, the twin's too"
        ),
        pytest.param({"seconds": 180.5}, "seconds", id="three minutes"),
    ],
)
def test_what_costs_more_fails_one_check(changed: dict[str, Any], name: str) -> None:
    found = outcomes(judged(facts(step(**changed))))
    assert [each for each, ok in found.items() if not ok] == [name]


def test_the_steps_count_together() -> None:
    found = outcomes(judged(facts(step(seconds=100), step(seconds=81))))
    assert found["seconds"] is False


@pytest.mark.parametrize(
    ("machine", "others", "reason"),
    [
        pytest.param(
            MACHINE | {"load": 3.2}, 0.0, "load 3.20 at the start, quiet is 1.5; 500.0 s here", id="load"
        ),
        pytest.param(
            MACHINE, 0.4, "others used 40% of its cores, quiet is 10%; 500.0 s here", id="meanwhile"
        ),
        pytest.param(
            MACHINE | {"cores": [3]}, 0.0, "for 2 cores, and there is 1; 500.0 s here", id="one core"
        ),
    ],
)
def test_on_a_busy_machine_the_time_of_day_is_no_verdict_and_the_rest_is(
    machine: dict[str, Any], others: float, reason: str
) -> None:
    report = judged(facts(step(seconds=500.0), others_share=others), machine)
    (skipped,) = [one for one in report.checks if one.ok is None]
    assert skipped.id == "wheel-seconds"
    assert str(skipped.skipped).endswith(reason)
    assert report.ok
    too_much = facts(step(cpu_seconds=1000.0), others_share=others)
    assert not judged(too_much, machine).ok


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        pytest.param({"afterwards": [{"name": "job1", "state": "failed"}]}, "completed", id="it failed"),
        pytest.param({"afterwards": [], "queues": [], "fit": []}, "completed", id="no job"),
        pytest.param({"queues": []}, "seen-in-queue", id="never in the queue"),
        pytest.param({"fit": ["trained"]}, "shown-by-fit", id="past the queue"),
    ],
)
def test_a_job_that_was_not_queued_and_completed_fails(changed: dict[str, Any], name: str) -> None:
    assert outcomes(judged(facts(**changed)))[name] is False
