"""An array in words: its counts, why no task starts, which tasks failed."""

from typing import Any

import pytest
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.jobs.array_views import ArrayView, array_view, task_view

from tests.integration.client.array_answers import array_document, task_document


def seen(**fields: Any) -> ArrayView:
    return array_view(array_document(**fields))


def test_an_array_that_waits_says_why_no_task_starts() -> None:
    waiting = {"code": "dependency", "message": "waits for prepare"}
    assert seen(waiting=waiting).line == (
        "sweep: pending, 0 of 4 completed, 4 waiting - dependency: waits for prepare"
    )


def test_an_array_that_runs_counts_what_is_not_zero_with_its_throttle() -> None:
    counts = {"completed": 3, "failed": 1, "running": 2, "waiting": 58}
    assert seen(state="running", at_most=8, tasks=counts, failed="7").line == (
        "sweep: running, 3 of 64 completed, 1 failed, 2 running of at most 8, 58 waiting"
    )


def test_an_array_that_failed_names_the_tasks() -> None:
    view = seen(state="failed", tasks={"completed": 61, "failed": 3}, failed="7,8,31")
    assert view.failure == "3 of 64 tasks failed: 7, 8, 31"
    assert view.line.endswith("- 3 of 64 tasks failed: 7, 8, 31")


def test_a_long_list_of_failed_tasks_is_cut_between_two() -> None:
    view = seen(tasks={"failed": 500}, failed=",".join(str(2 * number) for number in range(500)))
    assert view.failure.endswith(", ...")
    assert len(view.failure) < 250
    assert ",," not in view.failure


def test_a_task_has_its_values_and_its_reason() -> None:
    reason = {"code": "name-taken", "message": "a job has the name"}
    task = task_view(task_document(3, "failed", values={"lr": "0.1"}, reason=reason, attempt=None))
    assert (task.values, task.why, task.attempt) == ({"lr": "0.1"}, "name-taken: a job has the name", None)


@pytest.mark.parametrize(
    "broken", [{"tasks": 7}, {"name": "x"}, {"name": "x", "state": "held", "tasks": None}]
)
def test_a_view_that_is_none_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(MalformedViewError):
        array_view(broken)
