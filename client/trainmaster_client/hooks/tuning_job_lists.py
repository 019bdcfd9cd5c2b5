"""ListHyperParameterTuningJobs: the studies of the queue among the tuning jobs of SageMaker."""

from collections.abc import Callable, Iterator

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import ForbiddenError, InvalidArgumentError
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.hooks.botocore_events import Answer, PlainClients, Where, answered
from trainmaster_client.jobs.job_views import FINAL_STATES
from trainmaster_client.jobs.merged_lists import (
    TUNING_JOBS,
    Cursor,
    as_boto3,
    merged,
    on_the_wire,
    page_size,
    wanted,
)
from trainmaster_client.jobs.queue_reader import listed_jobs
from trainmaster_client.tuning.tuning_requests import tuning_job_of

MOST_PAGES = 10
"""Pages of the queue's jobs in each state that are searched for trials; ended jobs come newest first."""


class TuningJobLists:
    """Lists for one caller, who sees the studies of the jobs that the queue shows.

    Args:
        api: The API whose jobs are searched for trials.
        clients: For SageMaker's own tuning jobs.
        summary: Summarizes the study with a name; None if there is none.
    """

    def __init__(
        self, api: ApiClient, clients: PlainClients, summary: Callable[[str, Where], Document | None]
    ) -> None:
        self._api = api
        self._clients = clients
        self._summary = summary

    def answer(self, body: Document, where: Where) -> Answer | None:
        """Answer a list with the studies; None if no study matches, and SageMaker's list is the answer."""
        try:
            cursor = Cursor.read(body.get("NextToken"), size=page_size(body))
        except InvalidArgumentError:  # SageMaker's own token, of a list that had no study
            return None
        try:
            names = self._names(body.get("NameContains") or "")
        except ForbiddenError as error:
            if error.trouble is Trouble.EXPIRED_CREDENTIALS:
                raise
            return None  # of no team: there is nothing of the queue to see
        studies = (self._summary(name, where) for name in names)
        summaries = (on_the_wire(TUNING_JOBS, study) for study in studies if study is not None)
        queued = list(wanted(TUNING_JOBS, summaries, body))
        if not queued and body.get("NextToken") is None:
            return None
        theirs = {} if cursor.is_at_end else self._listed(body, cursor, where)
        page = merged(TUNING_JOBS, cursor, theirs, queued, body)
        token = {"NextToken": page.next_token} if page.next_token else {}
        return answered(
            {TUNING_JOBS.summaries: [as_boto3(TUNING_JOBS, summary) for summary in page.summaries], **token}
        )

    def _names(self, part: str) -> list[str]:
        """List the names of studies that are known by trials among the queue's jobs."""
        tuning_jobs = {tuning_job_of(name) for name in self._job_names()}
        return sorted(name for name in tuning_jobs if name is not None and part in name)

    def _job_names(self) -> Iterator[str]:
        for state in (None, *sorted(FINAL_STATES)):
            jobs = listed_jobs(self._api, {"state": state}, most_pages=MOST_PAGES)
            yield from (str(job["name"]) for job in jobs if job.get("name"))

    def _listed(self, body: Document, cursor: Cursor, where: Where) -> Document:
        parameters = {**body, "NextToken": cursor.sagemaker, "MaxResults": cursor.size}
        client = self._clients.of("sagemaker", where)
        page: Document = client.list_hyper_parameter_tuning_jobs(
            **{name: value for name, value in parameters.items() if value is not None}
        )
        entries = [on_the_wire(TUNING_JOBS, entry) for entry in page[TUNING_JOBS.summaries]]
        return {**page, TUNING_JOBS.summaries: entries}
