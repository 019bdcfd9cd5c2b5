"""The checks of the pipeline demo: each fails where what it is about did not happen."""

from copy import deepcopy
from typing import Any

import pytest
from trainmaster_client.report import Report

from demos.pipeline import check, most_at_once


def task(index: int, array: str = "sweep", **fields: Any) -> dict[str, Any]:
    return {
        "task": f"{array}-{index}",
        "index": index,
        "state": "completed",
        "values": {"lr": "1e-3", "seed": str(index)},
        "highest_lr": 1e-3,
        "loss": 3.0 + index,
        "printed": 3.0 + index,
        **fields,
    }


FACTS: dict[str, Any] = {
    "queued": {"state": "pending", "waiting": {"code": "dependency", "message": "waits for prepare"}},
    "swept": {"state": "failed", "failed": "3"},
    "tasks": [
        *(task(index) for index in (0, 1, 2, 4, 5)),
        task(3, state="failed", loss=None, printed=None),
        task(3, "sweep-again1", highest_lr=5e-4),  # it resumed behind the peak
    ],
    "rerun": {"array": "sweep-again1", "state": "completed", "resumed_from": {"step": 4}},
    "most_at_once": 2,
    "best": {"task": "sweep-0", "loss": 3.0},
    "evaluated": 3.1,
}


def failed(facts: dict[str, Any]) -> list[str]:
    report = Report(name="pipeline")
    report.facts |= facts
    check(report)
    return [found.id for found in report.checks if not found.ok]


def test_the_whole_story_passes() -> None:
    assert failed(FACTS) == []


@pytest.mark.parametrize(
    ("place", "value", "check_name"),
    [
        (("queued", "waiting"), None, "queued-behind-its-data"),
        (("swept", "failed"), "3,4", "one-task-failed"),
        (("most_at_once",), 3, "throttle"),
        (("rerun", "state"), "failed", "rerun"),
        (("rerun", "resumed_from"), None, "rerun-resumed"),
        (("tasks", 0, "state"), "stopped", "every-setting-completed"),
        (("tasks", 0, "highest_lr"), 3e-3, "values-arrived"),
        (("tasks", 1, "printed"), 4.5, "results-are-what-was-printed"),
        (("best", "loss"), 4.0, "best"),
        (("evaluated",), 9.0, "evaluated"),
    ],
)
def test_a_check_fails_where_its_part_did_not_happen(
    place: tuple[Any, ...], value: object, check_name: str
) -> None:
    facts = deepcopy(FACTS)
    where: Any = facts
    for key in place[:-1]:
        where = where[key]
    where[place[-1]] = value
    assert check_name in failed(facts)


def test_tasks_that_run_at_one_time_are_counted_by_their_processes() -> None:
    events = [("start", "sweep-0"), ("start", "sweep-1"), ("exit", "sweep-0"), ("start", "sweep-2")]
    records = [{"kind": "process", "event": event, "training_job": job} for event, job in events]
    others = [{"kind": "process", "event": "start", "training_job": "prepare"}, {"kind": "call"}]
    assert most_at_once([*records, *others], "sweep") == 2
