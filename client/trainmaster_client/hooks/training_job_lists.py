"""ListTrainingJobs: what the queue has among what SageMaker lists, as DescribeTrainingJob describes it.

SageMaker knows no job that waits, and lists what its first attempt came to for one that came back.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
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

LISTED_SECONDS = 5.0
"""How long a list of the queue's unfinished jobs is taken for true: a reader asks for page after page."""
_LARGEST_PAGE = "100"
"""Jobs; the most the API gives at once."""
_EMPTY_PAGES = 10
"""Of SageMaker, read on where all of a page are jobs of the queue, which stand elsewhere in the list."""
_LOOKS_AT_ONCE = 8
"""Stopped training jobs of a page, each of which may be an attempt of a job that goes on or went on."""
_NOT_OF_THE_QUEUE = ("WarmPoolStatusEquals", "TrainingPlanArnEquals")
"""Filters that no unfinished job of the queue is looked at by."""

Describe = Callable[[str, Where], Description | None]
"""A job of the queue by the name that it was submitted under; None: it is none of the queue's."""


class TrainingJobLists:
    """Lists for one caller, who sees the jobs that the queue shows. Threads may share it.

    Args:
        api: Whose jobs are listed.
        clients: For SageMaker's own list.
        describe: Says what a job came to.
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
        """Something was changed by this caller, who wants to see it."""
        self._unfinished.forget()

    def answer(self, request: Document, where: Where) -> Answer | None:
        """None: SageMaker's list alone. Raises InvalidArgumentError and what the API client raises."""
        if any(name in request for name in _NOT_OF_THE_QUEUE) or not self._is_understood(request, where):
            return None
        try:
            jobs = self._unfinished.jobs()
        except ForbiddenError as error:
            if error.trouble is Trouble.EXPIRED_CREDENTIALS:
                raise
            return None  # of no team: there is nothing of the queue to see
        queued = [summary_of(job, arn_prefix=self._prefix(job, where)) for job in jobs]
        asked = list(wanted(TRAINING_JOBS, queued, request))
        summaries, token = self._page(asked, request, where)
        unfinished = {one[TRAINING_JOBS.name] for one in queued}
        hidden = unfinished - {one[TRAINING_JOBS.name] for one in asked}  # SageMaker has their first attempts
        shown = [one for one in summaries if one[TRAINING_JOBS.name] not in hidden]
        corrected = self._corrected(shown, unfinished, where)
        found = [as_boto3(TRAINING_JOBS, one) for one in wanted(TRAINING_JOBS, corrected, request)]
        return answered({TRAINING_JOBS.summaries: found, **({"NextToken": token} if token else {})})

    def _page(
        self, queued: Iterable[Summary], request: Document, where: Where
    ) -> tuple[Iterable[Summary], str | None]:
        """The first page that has an entry, and the token of the one behind it."""
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
        """False where this botocore does not know a filter: a caller of the gateway may have a newer one.

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
        """SageMaker's page."""
        asked = {**request, "NextToken": cursor.sagemaker, "MaxResults": cursor.size}
        found: Document = self._client(where).list_training_jobs(
            **{name: value for name, value in asked.items() if value is not None}
        )
        entries = [on_the_wire(TRAINING_JOBS, one) for one in found[TRAINING_JOBS.summaries]]
        return {**found, TRAINING_JOBS.summaries: entries}

    def _client(self, where: Where) -> Any:  # noqa: ANN401  boto3's
        return self._clients.of("sagemaker", where)

    def _corrected(self, entries: Iterable[Summary], unfinished: set[str], where: Where) -> Iterable[Summary]:
        """A stopped training job may be the first attempt of a job that ended otherwise."""
        with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
            return list(pool.map(lambda one: self._as_described(one, unfinished, where), entries))

    def _as_described(self, entry: Summary, unfinished: set[str], where: Where) -> Summary:
        name = entry[TRAINING_JOBS.name]
        if entry[TRAINING_JOBS.status] != "Stopped" or name in unfinished:
            return entry
        found = self._describe(name, where)
        if found is None:
            return entry
        said = on_the_wire(TRAINING_JOBS, found)
        return {**entry, **{key: said[key] for key in (*entry, "TrainingEndTime") if key in said}}

    def _prefix(self, job: JobView, where: Where) -> str:
        """The beginning of the ARNs of training jobs: the stack's account is that of each job's role."""
        if not self._arn_prefix:
            found = self._describe(str(job.name), where) or {}
            self._arn_prefix = str(found.get("TrainingJobArn") or "").rpartition("/")[0]
        return f"{self._arn_prefix}/" if self._arn_prefix else ""


def summary_of(job: JobView, *, arn_prefix: str) -> Summary:
    """List an unfinished job. The API's list has no time of a change, so it is that of the submission."""
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
    """The queue's jobs that have not ended and that this caller may see, asked for once in a while."""

    def __init__(self, api: ApiClient, monotonic: Callable[[], float]) -> None:
        self._api = api
        self._monotonic = monotonic
        self._listing = threading.Lock()
        self._fresh_until = float("-inf")
        self._jobs: list[JobView] = []

    def jobs(self) -> list[JobView]:
        with self._listing:
            if self._monotonic() >= self._fresh_until:
                self._jobs = [job for job in map(job_view, self._all()) if job.name and job.submitted_at]
                self._fresh_until = self._monotonic() + LISTED_SECONDS
            return self._jobs

    def forget(self) -> None:
        self._fresh_until = float("-inf")

    def _all(self) -> Iterator[Document]:
        token: str | None = None
        while True:
            page = self._api.jobs(limit=_LARGEST_PAGE, next_token=token)
            yield from page.get("jobs") or ()
            before, token = token, page.get("next_token")
            if not token or token == before:
                return
