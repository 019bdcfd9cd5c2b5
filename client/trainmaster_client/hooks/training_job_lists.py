"""ListTrainingJobs: the queue's jobs among those that SageMaker lists, as DescribeTrainingJob describes them.

SageMaker knows no job that waits, and lists how the first attempt ended for a job that resumed.
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.model import StructureShape
from botocore.validate import ParamValidator

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import ForbiddenError, InvalidArgumentError
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.hooks.botocore_events import Answer, PlainClients, Where, answered
from trainmaster_client.hooks.job_description import Description
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.merged_lists import (
    TRAINING_JOBS,
    Cursor,
    Summary,
    as_boto3,
    merged,
    on_the_wire,
    page_size,
    wanted,
)
from trainmaster_client.jobs.queue_reader import listed_jobs

LISTED_SECONDS = 5.0
"""Seconds a list of the queue's unfinished jobs is reused: a reader asks for page after page."""
_EMPTY_PAGES = 10
"""SageMaker's pages read in a row while all their entries are jobs of the queue, listed at another place."""
_LOOKS_AT_ONCE = 8
"""Stopped training jobs described in parallel; each may be an attempt of a job that continued."""
_NOT_OF_THE_QUEUE = ("WarmPoolStatusEquals", "TrainingPlanArnEquals")
"""Filters that the queue's unfinished jobs are not tried with: SageMaker alone answers such a request."""

Describe = Callable[[str, Where], Description | None]
"""Describes a job of the queue by the name that it was submitted under; None if the queue has no such job."""


class TrainingJobLists:
    """Lists for one caller, who sees the jobs that the queue shows. Threads may share it.

    Args:
        api: The API whose jobs are listed.
        clients: For SageMaker's own list.
        describe: Describes a job over all its attempts.
        monotonic: Seconds of a clock that never goes back.
    """

    def __init__(
        self,
        api: ApiClient,
        clients: PlainClients,
        describe: Describe,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients = clients
        self._describe = describe
        self._unfinished = _Unfinished(api, monotonic)
        self._arn_prefix = ""

    def forget(self) -> None:
        """Read the jobs again at the next call: this caller changed something and wants to see it."""
        self._unfinished.forget()

    def answer(self, request: Document, where: Where) -> Answer | None:
        """Answer a list with the queue's jobs; None if SageMaker's list alone is the answer.

        Raises InvalidArgumentError and what the API client raises.
        """
        if any(name in request for name in _NOT_OF_THE_QUEUE) or not self._is_understood(request, where):
            return None
        try:
            jobs = self._unfinished.jobs()
        except ForbiddenError as error:
            if error.trouble is Trouble.EXPIRED_CREDENTIALS:
                raise
            return None  # of no team: there is nothing of the queue to see
        queued = [summary_of(job, arn_prefix=self._prefix(job, where)) for job in jobs]
        matching = list(wanted(TRAINING_JOBS, queued, request))
        summaries, token = self._page(matching, request, where)
        unfinished = {summary[TRAINING_JOBS.name] for summary in queued}
        # SageMaker lists the first attempts of these under the job's name
        hidden = unfinished - {summary[TRAINING_JOBS.name] for summary in matching}
        shown = [summary for summary in summaries if summary[TRAINING_JOBS.name] not in hidden]
        corrected = self._corrected(shown, unfinished, where)
        entries = [as_boto3(TRAINING_JOBS, summary) for summary in wanted(TRAINING_JOBS, corrected, request)]
        return answered({TRAINING_JOBS.summaries: entries, **({"NextToken": token} if token else {})})

    def _page(
        self, queued: Iterable[Summary], request: Document, where: Where
    ) -> tuple[Iterable[Summary], str | None]:
        """Return the first page that has an entry, and the token of the following one."""
        size, token = page_size(request), request.get("NextToken")
        for _ in range(_EMPTY_PAGES):
            cursor = Cursor.read(token, size=size)
            theirs = {} if cursor.is_at_end else self._listed(request, cursor, where)
            page = merged(TRAINING_JOBS, cursor, theirs, queued, request)
            token = page.next_token
            if page.summaries or not token:
                break
        return page.summaries, token

    def _is_understood(self, request: Document, where: Where) -> bool:
        """Tell whether this botocore knows all filters: a caller of the gateway may have a newer one.

        Raises InvalidArgumentError for a value that boto3 would refuse before it calls.
        """
        shape = self._client(where).meta.service_model.operation_model("ListTrainingJobs").input_shape
        assert isinstance(shape, StructureShape)
        if not set(request) <= set(shape.members):
            return False
        report = ParamValidator().validate(request, shape)
        if report.has_errors():
            raise InvalidArgumentError(f"ListTrainingJobs: {report.generate_report()}.", hint="Correct it.")
        return True

    def _listed(self, request: Document, cursor: Cursor, where: Where) -> Document:
        """Return SageMaker's page."""
        parameters = {**request, "NextToken": cursor.sagemaker, "MaxResults": cursor.size}
        page: Document = self._client(where).list_training_jobs(
            **{name: value for name, value in parameters.items() if value is not None}
        )
        entries = [on_the_wire(TRAINING_JOBS, entry) for entry in page[TRAINING_JOBS.summaries]]
        return {**page, TRAINING_JOBS.summaries: entries}

    def _client(self, where: Where) -> Any:  # noqa: ANN401  boto3's
        return self._clients.of("sagemaker", where)

    def _corrected(self, entries: Iterable[Summary], unfinished: set[str], where: Where) -> Iterable[Summary]:
        """Correct stopped entries: each may be the first attempt of a job that ended otherwise."""
        with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
            return list(pool.map(lambda entry: self._as_described(entry, unfinished, where), entries))

    def _as_described(self, entry: Summary, unfinished: set[str], where: Where) -> Summary:
        name = entry[TRAINING_JOBS.name]
        if entry[TRAINING_JOBS.status] != "Stopped" or name in unfinished:
            return entry
        described = self._describe(name, where)
        if described is None:
            return entry
        wire = on_the_wire(TRAINING_JOBS, described)
        return {**entry, **{key: wire[key] for key in (*entry, "TrainingEndTime") if key in wire}}

    def _prefix(self, job: JobView, where: Where) -> str:
        """Return the beginning of training jobs' ARNs: the stack's account is that of each job's role."""
        if not self._arn_prefix:
            described = self._describe(str(job.name), where) or {}
            self._arn_prefix = str(described.get("TrainingJobArn") or "").rpartition("/")[0]
        return f"{self._arn_prefix}/" if self._arn_prefix else ""


def summary_of(job: JobView, *, arn_prefix: str) -> Summary:
    """List an unfinished job. The API's list has no time of change, so it shows the time of submission."""
    assert job.submitted_at is not None, "whoever may see the name may see the time"
    at = job.submitted_at.timestamp()
    return {
        "TrainingJobName": job.name,
        "TrainingJobArn": f"{arn_prefix}{job.name}",
        "CreationTime": at,
        "LastModifiedTime": at,
        "TrainingJobStatus": "Stopping" if job.state == "stopping" else "InProgress",
    }


class _Unfinished:
    """The queue's unfinished jobs that this caller may see, listed again after some seconds."""

    def __init__(self, api: ApiClient, monotonic: Callable[[], float]) -> None:
        self._api = api
        self._monotonic = monotonic
        self._listing = threading.Lock()
        self._fresh_until = float("-inf")
        self._jobs: list[JobView] = []

    def jobs(self) -> list[JobView]:
        with self._listing:
            if self._monotonic() >= self._fresh_until:
                self._jobs = [
                    job for job in map(job_view, listed_jobs(self._api, {})) if job.name and job.submitted_at
                ]
                self._fresh_until = self._monotonic() + LISTED_SECONDS
            return self._jobs

    def forget(self) -> None:
        self._fresh_until = float("-inf")
