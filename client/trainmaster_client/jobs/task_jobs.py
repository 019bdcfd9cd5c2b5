"""Which job of the queue is a task's: its name, its tag, and what to do about one that is there. Pure.

A task instance submits job after job, each under the next of its names, and only when the last is of no more
use. So whoever executes it, after a retry or where another worker died, comes to the same name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from trainmaster_client.jobs.job_views import JobView

TASK_TAG = "airflow-task"
_LONGEST_NAME = 63
_LONGEST_VALUE = 256
"""Source: SageMaker API reference, TrainingJobName and Tag."""
_NO_TAG_VALUE = re.compile(r"[^\w .:/=+@-]")
"""Source: SageMaker API reference, Tag, Value."""
_SEPARATOR = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """A task instance, from one clearing to the next."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    """Index of a mapped task; -1 if it is not mapped."""
    cleared_tries: int
    """Tries until the task was cleared last."""

    @property
    def instance(self) -> str:
        """Name of the task instance, legible in a tag; what a tag cannot hold is replaced by a digest."""
        whole = _SEPARATOR.join((self.dag_id, self.run_id, self.task_id, str(self.map_index)))
        most = _LONGEST_VALUE - len(f"{_SEPARATOR}{self.cleared_tries}")
        if len(whole) <= most and not _NO_TAG_VALUE.search(whole):
            return whole
        digest = _digest(whole, 16)
        return f"{_NO_TAG_VALUE.sub('-', whole)[: most - len(digest) - 1]}{_SEPARATOR}{digest}"

    @property
    def tag(self) -> str:
        return f"{self.instance}{_SEPARATOR}{self.cleared_tries}"

    def job_name(self, wished: str, number: int) -> str:
        """Return the name of the task's job with this number.

        The first, 0, is the one that the DAG wishes.
        """
        if number == 0:
            return wished
        ending = f"-{_digest(f'{self.instance} {number}', 8)}"
        return wished[: _LONGEST_NAME - len(ending)] + ending


class NextStep(StrEnum):
    """Next step for a name; the values are the log's words for it."""

    SUBMIT = "nobody's"
    ATTACH = "this task's"
    OVER = "this task's, and over"
    """The job did not complete, or completed before the task was cleared."""
    GIVE_WAY = "another's"


def next_step(run: TaskRun, name: str, job: JobView | None, request: Mapping[str, Any]) -> NextStep:
    """Decide what to do about a name.

    Args:
        run: The task instance.
        name: The name.
        job: The job that has the name now, be it as an attempt's; None if none has it.
        request: The request of that job as it was submitted.
    """
    if job is None:
        return NextStep.SUBMIT
    instance, _, cleared_tries = _tag_of(request).rpartition(_SEPARATOR)
    if instance != run.instance or job.name != name:
        return NextStep.GIVE_WAY
    is_its_result = job.state == "completed" and cleared_tries == str(run.cleared_tries)
    return NextStep.ATTACH if not job.is_final or is_its_result else NextStep.OVER


def tagged(request: Mapping[str, Any], run: TaskRun) -> dict[str, Any]:
    """Return the request with the tag that says whose it is."""
    others = [tag for tag in request.get("Tags") or () if tag.get("Key") != TASK_TAG]
    return {**request, "Tags": [*others, {"Key": TASK_TAG, "Value": run.tag}]}


def _tag_of(request: Mapping[str, Any]) -> str:
    values = [str(tag.get("Value")) for tag in request.get("Tags") or () if tag.get("Key") == TASK_TAG]
    return values[0] if values else ""


def _digest(text: str, length: int) -> str:
    return sha256(text.encode()).hexdigest()[:length]
