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
from trainmaster_client.tuning.tuning_requests import tuning_job_of

MOST_PAGES = 10
"""Of the queue's jobs in each state, the newest ends first, that are looked through for trials."""
_LARGEST_PAGE = "100"
"""Jobs; the most the API gives at once."""


class TuningJobLists:
    """For one caller, who sees the studies of the jobs that the queue shows.

    Args:
        api: Whose jobs are looked through.
        clients: For SageMaker's own tuning jobs.
        summary: Of a study by its name; None: there is none.
    """

    def __init__(
        self, api: ApiClient, clients: PlainClients, summary: Callable[[str, Where], Document | None]
    ) -> None:
        self._api = api
        self._clients = clients
        self._summary = summary

    def answer(self, body: Document, where: Where) -> Answer | None:
        """None: SageMaker's alone, as there is no study that is asked for."""
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
        found = (self._summary(name, where) for name in names)
        summaries = (on_the_wire(TUNING_JOBS, one) for one in found if one is not None)
        queued = list(wanted(TUNING_JOBS, summaries, body))
        if not queued and body.get("NextToken") is None:
            return None
        theirs = {} if cursor.is_at_end else self._listed(body, cursor, where)
        page = merged(TUNING_JOBS, cursor, theirs, queued, body)
        token = {"NextToken": page.next_token} if page.next_token else {}
        return answered(
            {TUNING_JOBS.summaries: [as_boto3(TUNING_JOBS, one) for one in page.summaries], **token}
        )

    def _names(self, part: str) -> list[str]:
        """Of studies, by the trials among the queue's jobs."""
        found = {tuning_job_of(name) for name in self._job_names()}
        return sorted(name for name in found if name is not None and part in name)

    def _job_names(self) -> Iterator[str]:
        for state in (None, *sorted(FINAL_STATES)):
            token: str | None = None
            for _ in range(MOST_PAGES):
                page = self._api.jobs(limit=_LARGEST_PAGE, state=state, next_token=token)
                yield from (str(one["name"]) for one in page.get("jobs") or () if one.get("name"))
                token = page.get("next_token")
                if not token:
                    break

    def _listed(self, body: Document, cursor: Cursor, where: Where) -> Document:
        asked = {**body, "NextToken": cursor.sagemaker, "MaxResults": cursor.size}
        client = self._clients.of("sagemaker", where)
        found: Document = client.list_hyper_parameter_tuning_jobs(
            **{name: value for name, value in asked.items() if value is not None}
        )
        entries = [on_the_wire(TUNING_JOBS, one) for one in found[TUNING_JOBS.summaries]]
        return {**found, TUNING_JOBS.summaries: entries}
