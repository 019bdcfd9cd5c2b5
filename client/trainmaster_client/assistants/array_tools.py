"""The tools about arrays: lists, one array with its failed tasks, and results."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster_client.api import ApiClient
from trainmaster_client.assistants.tool_answers import (
    ArrayAnswer,
    ArrayEntry,
    ArraysAnswer,
    ResultsAnswer,
    TaskEntry,
    bounded,
)
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.hooks.array_results import ArrayResults, TaskResult, read_results
from trainmaster_client.jobs.array_views import ArrayView, TaskView, array_view, task_view
from trainmaster_client.jobs.newer_routes import newer_route

MOST_FAILED_TASKS = 20
MOST_RESULTS = 100
MOST_TASKS_READ = 500
"""Tasks of which results are read: SageMaker is asked for each one's metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayTools:
    """Each method raises TrainmasterClientError."""

    api: Callable[[], ApiClient]
    sagemaker: Callable[[], Any]
    """Makes a client of SageMaker without our handlers."""

    def arrays(self, filters: Mapping[str, str | bool | None], *, limit: int) -> ArraysAnswer:
        api = self.api()
        with newer_route(api, "/arrays"):
            documents = api.arrays(**filters).get("arrays") or ()
        entries = [_entry(array_view(document)) for document in documents]
        return ArraysAnswer(arrays=entries[:limit], is_truncated=len(entries) > limit)

    def array(self, name: str) -> ArrayAnswer:
        api = self.api()
        with newer_route(api, "/arrays"):
            view = array_view(api.array(name))
        failed = api.array_tasks(name, state="failed").get("tasks") or () if view.tasks.failed else ()
        tasks = [_task(task_view(document)) for document in failed]
        return ArrayAnswer(
            array=_entry(view),
            failed_tasks=tasks[:MOST_FAILED_TASKS],
            is_truncated=len(tasks) > MOST_FAILED_TASKS,
            commands_for_the_user=list(_commands(view)),
        )

    def results(self, name: str, *, by: str | None, largest: bool) -> ResultsAnswer:
        api = self.api()
        with newer_route(api, "/arrays"):
            view = array_view(api.array(name))
        if view.tasks.total > MOST_TASKS_READ:
            raise InvalidArgumentError(
                f"{view.name} has {view.tasks.total} tasks, and results are read of {MOST_TASKS_READ} here;",
                hint=f"the user can run: trainmaster results {shlex.quote(view.name)}",
            )
        results = read_results(api, name, make_client=self.sagemaker)
        if by is not None:
            results = _sorted(results, by, largest=largest)
        rows = [_task(row.task, row) for row in results.rows]
        return ResultsAnswer(
            tasks=rows[:MOST_RESULTS], note=bounded(results.note), is_truncated=len(rows) > MOST_RESULTS
        )


def _sorted(results: ArrayResults, by: str, *, largest: bool) -> ArrayResults:
    if by not in results.metric_names:
        known = ", ".join(results.metric_names) or "none yet"
        raise InvalidArgumentError(f"No task has a metric {by!r};", hint=f"metrics: {known}.")
    return results.best_first(by, largest=largest)


def _commands(view: ArrayView) -> Iterable[str]:
    """Yield what a user may want to run next; the tools change nothing themselves."""
    name = shlex.quote(view.name)
    if not view.is_final:
        yield f"trainmaster cancel {name}"
        yield f"trainmaster throttle {name} N"
    if view.state == "held":
        yield f"trainmaster release {name}"
    if view.tasks.failed:
        yield f"trainmaster rerun {name}"
    if view.tasks.completed:
        yield f"trainmaster results {name}"


def _entry(view: ArrayView) -> ArrayEntry:
    tasks = view.tasks
    return ArrayEntry(
        name=view.name,
        team=view.team,
        pool=view.pool,
        state=view.state,
        priority=view.priority,
        at_most=view.at_most,
        tasks=tasks.total,
        completed=tasks.completed,
        failed=tasks.failed,
        stopped=tasks.stopped,
        running=tasks.running,
        waiting=tasks.waiting + tasks.held,
        failed_indices=bounded(view.failed),
        submitted_at=view.submitted_at or None,
        ended_at=view.ended_at or None,
        usd=view.usd,
        why=bounded(view.why),
    )


def _task(view: TaskView, result: TaskResult | None = None) -> TaskEntry:
    return TaskEntry(
        index=view.index,
        job=view.name,
        values={bounded(name): bounded(text) for name, text in view.values.items()},
        metrics={} if result is None else {bounded(name): value for name, value in result.metrics.items()},
        state=view.state,
        attempt=view.attempt,
        cost_usd=view.cost_usd,
        why=bounded(view.why),
    )
