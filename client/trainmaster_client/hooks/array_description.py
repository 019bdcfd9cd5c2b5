"""DescribeTrainingJob for an array: one answer over all its tasks. Pure.

InProgress until all tasks have ended, then Completed, Failed with the tasks that failed, or Stopped.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from trainmaster_client.api import Document
from trainmaster_client.hooks.job_description import LONGEST_FAILURE_REASON, Description, described_request
from trainmaster_client.jobs.array_views import ArrayView

_STATUS = {"completed": "Completed", "failed": "Failed", "stopped": "Stopped"}
"""TrainingJobStatus of an array's state; any other state is InProgress."""
_VARIABLE_PREFIX = "TRAINMASTER_ARRAY_"
_TASK_FOLDER = re.compile(r"/[0-9]{1,5}(?:/again[0-9]+)?$")


def array_description(
    array: ArrayView, document: Document, request: Mapping[str, Any], *, arn: str
) -> Description:
    """Return the description of an array under its name.

    Args:
        array: The array.
        document: Its view as the API answered it, for the instants.
        request: The request that its tasks have in common.
        arn: ARN of the training job with the array's name, which there never is.
    """
    status = _STATUS.get(array.state, "InProgress")
    submitted, ended = _instant(document.get("submitted_at")), _instant(document.get("ended_at"))
    described = described_request(request, arn, array.name)
    # Each task's model lies below this place, in the folder of the task's name.
    described["ModelArtifacts"] = {"S3ModelArtifacts": str(described["OutputDataConfig"].get("S3OutputPath"))}
    secondary = status if status != "InProgress" else "Training" if array.tasks.running else "Pending"
    return {
        **described,
        "TrainingJobName": array.name,
        "TrainingJobStatus": status,
        "SecondaryStatus": secondary,
        "SecondaryStatusTransitions": [_transition(array, secondary, submitted, ended)],
        "CreationTime": submitted,
        "LastModifiedTime": ended or submitted,
        **({"TrainingEndTime": ended} if ended is not None and status != "InProgress" else {}),
        **({"FailureReason": _failure(array)} if status == "Failed" else {}),
    }


def of_all_tasks(request: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """Return a task's request without what is of that task: its name, its variables, its folder."""
    environment = request.get("Environment") or {}
    common = {key: value for key, value in environment.items() if not str(key).startswith(_VARIABLE_PREFIX)}
    whole = {**request, "TrainingJobName": name}
    if "Environment" in request:
        whole["Environment"] = common
    checkpoints = request.get("CheckpointConfig")
    if checkpoints:
        folder = _TASK_FOLDER.sub("", str(checkpoints.get("S3Uri") or ""))
        whole["CheckpointConfig"] = {**checkpoints, "S3Uri": folder}
    return whole


def _failure(array: ArrayView) -> str:
    """Say which tasks failed, or were stopped where none did."""
    text = (
        array.failure or f"{array.tasks.stopped} of {array.tasks.total} tasks were stopped: {array.stopped}"
    )
    return text[:LONGEST_FAILURE_REASON]


def _transition(
    array: ArrayView, status: str, submitted: datetime | None, ended: datetime | None
) -> Description:
    """Return the one transition of an array: SDKs print its message whenever it changes."""
    why = array.why if status == "Pending" else ""
    message = array.counts + (f" - {why}" if why else "")
    return {
        "Status": status,
        "StartTime": submitted,
        **({"EndTime": ended} if ended is not None else {}),
        "StatusMessage": message,
    }


def _instant(text: object) -> datetime | None:
    return None if not text else datetime.fromisoformat(str(text)).astimezone(UTC)
