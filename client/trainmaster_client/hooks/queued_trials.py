"""Trials of a study as jobs of the queue."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from botocore.exceptions import ClientError

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import NotFoundError
from trainmaster_client.hooks.botocore_events import PlainClients, Where
from trainmaster_client.hooks.job_description import Description
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.queued_jobs import QueuedJobs
from trainmaster_client.tuning.study import Seen, TrialStatus
from trainmaster_client.tuning.study_runs import LONGEST_FAILURE

_NOT_THERE = frozenset({"ValidationException", "ResourceNotFound"})
_ENDED = {"Completed", "Failed", "Stopped"}


class Jobs(Protocol):
    """The part of the hooks of training jobs that trials need."""

    api: ApiClient
    queued: QueuedJobs

    def submit(self, request: Mapping[str, Any], *, key: str | None = None) -> Document: ...
    def described(self, job: JobView, where: Where) -> Description: ...


class TrialJobs:
    """Submits and reads trials as jobs of the queue: a ``TrialQueue``."""

    def __init__(self, jobs: Jobs, clients: PlainClients, where: Where) -> None:
        self._jobs = jobs
        self._clients = clients
        self._where = where

    def look(self, name: str, metric: str) -> Seen | None:
        try:
            job = job_view(self._jobs.api.job(name, estimate=False))
        except NotFoundError:  # forgotten, or never submitted
            answer = described_by_sagemaker(name, self._clients.of("sagemaker", self._where))
            return None if answer is None else _seen(answer, metric)
        if not job.is_final:
            return Seen(started_at=job.started_at)
        return _seen(self._jobs.described(job, self._where), metric)

    def submit(self, request: Mapping[str, Any]) -> None:
        """Send no key: two processes that submit a trial at once both get the job, though it ended.

        A trial is submitted where no job has its name, so a minute after that it is another study's.
        """
        self._jobs.submit(request, key="")

    def cancel(self, name: str) -> None:
        self._jobs.api.cancel(name)


def described_by_sagemaker(name: str, client: Any) -> Description | None:  # noqa: ANN401  boto3's
    try:
        answer: Description = client.describe_training_job(TrainingJobName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] in _NOT_THERE:
            return None
        raise
    return answer


def _seen(answer: Description, metric: str) -> Seen:
    """Read a trial's state. A failed training job has no objective, even if it printed the metric."""
    status = answer["TrainingJobStatus"]
    if status not in _ENDED:
        return Seen(started_at=answer.get("TrainingStartTime"))
    values = {
        metric_entry["MetricName"]: metric_entry["Value"]
        for metric_entry in answer.get("FinalMetricDataList") or ()
    }
    return Seen(
        status=TrialStatus(status),
        started_at=answer.get("TrainingStartTime"),
        ended_at=answer.get("TrainingEndTime") or answer.get("LastModifiedTime") or datetime.now(UTC),
        value=None if status == "Failed" else values.get(metric),
        failure=str(answer.get("FailureReason") or "")[:LONGEST_FAILURE],
    )
