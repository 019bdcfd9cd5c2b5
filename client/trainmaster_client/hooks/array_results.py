"""The results of an array: of each task its values, final metrics, state and cost."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.api import ApiClient
from trainmaster_client.errors import NotFoundError
from trainmaster_client.jobs.array_views import TaskView, task_view
from trainmaster_client.jobs.data_frames import data_frame
from trainmaster_client.jobs.job_views import FINAL_STATES, job_view

LOOKS_AT_ONCE = 8
"""Training jobs described in parallel; SageMaker allows some ten a second."""
_FACTS = frozenset({"index", "name", "state", "cost_usd", "attempt", "started_at", "ended_at", "why"})
"""Names of a record's other columns."""
_NOT_THERE = frozenset({"ValidationException", "ResourceNotFound"})
"""Describe's codes for a name that it does not know. Source: SageMaker API reference, Common Errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    task: TaskView
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Final values by name, as the request's MetricDefinitions name them; empty before they are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayResults:
    name: str
    rows: tuple[TaskResult, ...]
    """Rows in the order of their indices, or the best first."""
    note: str = ""
    """Says why metrics are missing; empty if they are not."""

    @property
    def value_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows for name in row.task.values))

    @property
    def metric_names(self) -> tuple[str, ...]:
        return tuple(sorted({name for row in self.rows for name in row.metrics}))

    def best_first(self, metric: str, *, largest: bool = False) -> "ArrayResults":
        """Sort by a metric, the smallest value first or the largest.

        Tasks that did not complete or lack the metric come last, by index.
        """
        sign = -1 if largest else 1

        def rank(row: TaskResult) -> tuple[bool, float, int]:
            value = row.metrics.get(metric) if row.task.state == "completed" else None
            return value is None, 0.0 if value is None else sign * value, row.task.index

        return ArrayResults(name=self.name, rows=tuple(sorted(self.rows, key=rank)), note=self.note)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each task as a record; a column whose name is that of another one is marked."""
        values = self._value_columns()
        taken = {*_FACTS, *values.values()}
        metrics = {name: f"metric.{name}" if name in taken else name for name in self.metric_names}
        for row in self.rows:
            task = row.task
            yield {
                "index": task.index,
                **{column: task.values.get(name) for name, column in values.items()},
                **{column: row.metrics.get(name) for name, column in metrics.items()},
                "state": task.state,
                "cost_usd": task.cost_usd,
                "attempt": task.attempt,
                "started_at": task.started_at or None,
                "ended_at": task.ended_at or None,
                "why": task.why,
                "name": task.name,
            }

    def to_frame(self) -> Any:  # noqa: ANN401  pandas is imported when asked for
        """Return a pandas DataFrame with a row per task; values that are numbers are numbers in it.

        Raises InvalidArgumentError if pandas is not installed.
        """
        return data_frame(self.records(), numbers=self._value_columns().values())

    def _value_columns(self) -> dict[str, str]:
        """Map each hyperparameter to its column, which has a prefix where the name is that of a fact."""
        return {name: f"value.{name}" if name in _FACTS else name for name in self.value_names}


def read_results(
    api: ApiClient,
    name: str,
    *,
    make_client: Callable[[], Any],
    known: MutableMapping[str, Mapping[str, float]] | None = None,
    most: int | None = None,
) -> ArrayResults:
    """Read the results of an array as they are now. Raises what the API client raises.

    Args:
        api: Asked for the tasks, and for the training jobs of those that were started more than once.
        name: The array's.
        make_client: Makes a client of SageMaker without our handlers, which has the metrics.
        known: Metrics of tasks that have ended, by name: they are not read again, and new ones are added.
        most: Most tasks whose metrics are read by this call; the note says how many are left.
    """
    tasks = [task_view(document) for document in api.array_tasks(name).get("tasks") or ()]
    known = {} if known is None else known
    unread = [
        task for task in tasks if task.attempt is not None and task.started_at and task.name not in known
    ]
    due = unread[:most]
    metrics, note = dict(known), ""
    if len(due) < len(unread):
        note = f"The metrics of {len(unread) - len(due)} tasks are still to be read."
    try:
        metrics |= _metrics_of(api, due, make_client) if due else {}
        known.update({task.name: metrics[task.name] for task in due if task.state in FINAL_STATES})
    except (ClientError, BotoCoreError) as error:
        note = f"The metrics cannot be read from SageMaker: {error}"
    rows = tuple(TaskResult(task=task, metrics=metrics.get(task.name, {})) for task in tasks)
    return ArrayResults(name=name, rows=rows, note=note)


def _metrics_of(
    api: ApiClient, tasks: Sequence[TaskView], make_client: Callable[[], Any]
) -> dict[str, Mapping[str, float]]:
    client = make_client()
    with ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
        values = pool.map(lambda task: _metrics(api, client, task), tasks)
        return {task.name: read for task, read in zip(tasks, values, strict=True)}


def _metrics(api: ApiClient, client: Any, task: TaskView) -> dict[str, float]:  # noqa: ANN401  boto3's
    """Read the newest value of each metric over all attempts of a task."""
    values: dict[str, float] = {}
    for training_job in _training_jobs(api, task):
        try:
            answer = client.describe_training_job(TrainingJobName=training_job)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                continue
            raise
        for metric in answer.get("FinalMetricDataList") or ():
            values[str(metric["MetricName"])] = float(metric["Value"])
    return values


def _training_jobs(api: ApiClient, task: TaskView) -> list[str]:
    """Name the training jobs of a task, oldest first: the first attempt has the task's own name."""
    if not task.attempt:
        return [task.name]
    try:
        job = job_view(api.job(task.name, estimate=False))
    except NotFoundError:
        return [task.name]
    return [attempt.training_job_name for attempt in job.attempts if attempt.training_job_name]
