"""An array is one line of the queue, in its place, however many tasks it has."""

from typing import Any

import pytest
from trainmaster_client.cli.queue_table import print_queue_csv
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.views.queue_model import QueueAnswers, QueueModel, queue_model

from tests.builders import NOON
from tests.integration.client.fake_api import view

TASKS = {"total": 64, "waiting": 50, "held": 0, "running": 8, "completed": 4, "failed": 2, "stopped": 0}


def array(**fields: Any) -> dict[str, Any]:
    return {
        "name": "sweep",
        "team": "vision",
        "pool": "p5",
        "state": "running",
        "reason": None,
        "priority": 3,
        "at_most": 8,
        "tasks": TASKS,
        "failed": "3,7",
        "submitted_at": "2026-11-02T11:00:00Z",
        **fields,
    }


def model(*arrays: dict[str, Any], jobs: list[dict[str, Any]]) -> QueueModel:
    return queue_model(QueueAnswers(document={"jobs": jobs, "arrays": arrays}), now=NOON)


def names(found: QueueModel) -> list[str]:
    return [row.name for row in found.rows]


RUNNING = view("run", state="running", position=None)
FIRST, SECOND = view("first", position=1), view("second", position=40)
PARKED = view("parked", position=None, state="held")
ELSEWHERE = view("elsewhere", pool="g5", position=1)
JOBS = [RUNNING, FIRST, SECOND, PARKED, ELSEWHERE]


def test_the_line_of_an_array_counts_its_tasks() -> None:
    (row,) = model(array(), jobs=[]).rows
    assert row.cells["short"] == "50 of 64 wait, 8 run, 2 failed"
    assert row.cells["reason"] == "4 of 64 completed, 2 failed, 8 running of at most 8, 50 waiting"
    assert (row.name, row.cells["state"], row.cells["priority"], row.cells["age"]) == (
        "sweep",
        "running",
        "3",
        "1h00m",
    )


def test_counts_that_do_not_fit_are_left_out_the_last_first() -> None:
    many = dict.fromkeys(("waiting", "held", "running", "failed"), 10_000)
    (row,) = model(array(tasks={"total": 40_000, **many}), jobs=[]).rows
    assert row.cells["short"] == "10000 of 40000 wait, 10000 held"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"position": 8}, ["run", "first", "sweep", "second", "parked"], id="at its position"),
        pytest.param({"position": 99}, ["run", "first", "second", "sweep", "parked"], id="behind all"),
        pytest.param({}, ["run", "first", "second", "sweep", "parked"], id="a stack that has no position"),
    ],
)
def test_it_stands_where_its_first_waiting_task_is(fields: dict[str, Any], expected: list[str]) -> None:
    assert names(model(array(**fields), jobs=JOBS)) == [*expected, "elsewhere"]


def test_an_array_of_a_pool_without_jobs_comes_last() -> None:
    assert names(model(array(pool="p4"), array(name="b", pool="p3"), jobs=JOBS))[-2:] == ["sweep", "b"]


def test_its_waiting_tasks_have_no_lines_of_their_own_and_running_ones_do() -> None:
    def tasks(state: str, name: str) -> dict[str, Any]:
        return view(name, state=state, array={"name": "sweep", "index": 7})

    jobs = [tasks("running", "sweep-1"), tasks("pending", "sweep-2"), tasks("preempted", "sweep-3")]
    assert names(model(array(), jobs=jobs)) == ["sweep-1", "sweep"]
    assert names(model(jobs=jobs)) == ["sweep-1", "sweep-2", "sweep-3"], "without its line they are seen"


def test_csv_is_of_jobs_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_queue_csv(model(jobs=[FIRST]))
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == ["job", "first"]


def test_an_older_stack_has_no_arrays() -> None:
    assert names(queue_model(QueueAnswers(document={"jobs": [FIRST], "arrays": None}), now=NOON)) == ["first"]


@pytest.mark.parametrize("fields", [{"tasks": 3}, {"submitted_at": "yesterday"}])
def test_an_array_of_another_shape_is_an_error_of_ours(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedViewError):
        model(array(**fields), jobs=[])
