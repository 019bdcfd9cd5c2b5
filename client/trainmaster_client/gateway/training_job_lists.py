"""The queue's entries of ListTrainingJobs: its unfinished jobs."""

from collections.abc import Mapping
from typing import Any

from trainmaster_client.jobs.job_views import JobView
from trainmaster_client.jobs.merged_lists import Summary

_NOT_OF_THE_QUEUE = ("WarmPoolStatusEquals", "TrainingPlanArnEquals")
"""Filters that no unfinished job of the queue is looked at by."""


def has_queued(request: Mapping[str, Any]) -> bool:
    return not any(name in request for name in _NOT_OF_THE_QUEUE)


def summary_of(job: JobView, *, arn_prefix: str) -> Summary:
    """Of an unfinished job. Its list says nothing of changes, so it was changed when it was submitted."""
    assert job.submitted_at is not None, "whoever may see the name may see the time"
    at = job.submitted_at.timestamp()
    return {
        "TrainingJobName": job.name,
        "TrainingJobArn": f"{arn_prefix}{job.name}",
        "CreationTime": at,
        "LastModifiedTime": at,
        "TrainingJobStatus": "Stopping" if job.state == "stopping" else "InProgress",
    }
