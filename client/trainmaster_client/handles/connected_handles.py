"""``submit``, ``job`` and ``jobs``: handles for a caller, whose API client they share."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import boto3

from trainmaster_client.api import ApiClient, Document, field_problem, find_api_url
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.request_documents import request_of
from trainmaster_client.handles.job_handles import Job
from trainmaster_client.handles.job_lists import Jobs
from trainmaster_client.hooks.botocore_events import like_the_default, plain_client
from trainmaster_client.http.calls import Parameter
from trainmaster_client.jobs.job_conditions import Conditions, with_conditions

MOST_JOBS = 1000
_PAGE = "100"


def submit(
    request: Mapping[str, Any],
    *,
    after: Conditions | None = None,
    api_url: str | None = None,
    boto_session: boto3.Session | None = None,
) -> Job:
    """Queue a CreateTrainingJob request, or what DescribeTrainingJob answered of one.

    Args:
        request: As boto3 takes it.
        after: Jobs that it waits for: names, conditions such as ``afterany:clean``, handles, or several.
        api_url: URL of the API; else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``.
        boto_session: Session whose credentials sign; None: boto3's default.

    Raises:
        InvalidArgumentError: The request stands within the mapping, or holds what JSON cannot say.
        RefusedError: As ``ApiClient.add_job`` raises it.
    """
    parsed = request_of(request, source="the request")
    for note in parsed.notes:
        print(f"Note: {note}", flush=True)
    connected = _Connection(api_url, boto_session)
    answer = connected.api.add_job(with_conditions(parsed.request, after))
    for warning in answer.get("warnings") or ():
        print(f"Warning: {field_problem(warning)}", flush=True)
    return connected.handle(answer.get("job") or {})


def job(name: str, *, api_url: str | None = None, boto_session: boto3.Session | None = None) -> Job:
    """Look up a job by the name that was submitted, or that of any of its attempts. Raises NotFoundError."""
    connected = _Connection(api_url, boto_session)
    return connected.handle(connected.api.job(name, estimate=False))


def jobs(
    *,
    api_url: str | None = None,
    boto_session: boto3.Session | None = None,
    limit: int = 100,
    **filters: Parameter,
) -> Jobs:
    """List the jobs that the caller may see by name, in the queue's order; jobs of other teams are left out.

    Args:
        api_url: URL of the API; else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``.
        boto_session: Session whose credentials sign; None: boto3's default.
        limit: The most jobs to list, up to 1,000.
        filters: Query parameters of ``GET /jobs``, such as ``state="failed"`` or ``mine=True``.
    """
    if not 1 <= limit <= MOST_JOBS:
        raise InvalidArgumentError(f"limit: {limit} is not valid.", hint=f"Use 1 to {MOST_JOBS}.")
    connected = _Connection(api_url, boto_session)
    documents = list(islice(connected.documents(filters), limit + 1))
    handles = [connected.handle(document) for document in documents[:limit]]
    return Jobs(handles, truncated=len(documents) > limit)


class _Connection:
    """The connection of one caller: all handles made with it share the API client."""

    def __init__(self, api_url: str | None, boto_session: boto3.Session | None) -> None:
        self._session = boto_session or like_the_default()
        self.api = ApiClient(find_api_url(api_url, self._session), self._session)

    def handle(self, document: Document) -> Job:
        return Job(self.api, document, make_logs=partial(plain_client, self._session, "logs"))

    def documents(self, filters: Mapping[str, Parameter]) -> Iterator[Document]:
        token: str | None = None
        while True:
            page = self.api.jobs(**filters, limit=_PAGE, next_token=token)
            yield from (document for document in page.get("jobs") or () if document.get("name"))
            before, token = token, page.get("next_token")
            if not token or token == before:
                return
