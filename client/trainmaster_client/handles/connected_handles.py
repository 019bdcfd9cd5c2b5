"""``submit``, ``job`` and ``jobs``: handles for a caller, whose API client they share."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, TypedDict, Unpack

import boto3

from trainmaster_client.api import ApiClient, Document, field_problem, find_api_url, new_key
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.request_documents import request_of
from trainmaster_client.handles.array_handles import JobArray
from trainmaster_client.handles.job_handles import Job
from trainmaster_client.handles.job_lists import Jobs
from trainmaster_client.hooks.botocore_events import like_the_default, plain_client
from trainmaster_client.hooks.estimator_arrays import is_estimator, train_as_array
from trainmaster_client.http.calls import Parameter
from trainmaster_client.jobs.array_requests import ARRAY_TAG, ArrayWish, GivenValues, array_body
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
    parsed = _parsed(request)
    if any(tag.get("Key") == ARRAY_TAG for tag in parsed.get("Tags") or ()):
        hint = "Use submit_array(request, tasks=...), and leave the tag out."
        raise InvalidArgumentError(f"The request has the tag {ARRAY_TAG}: it is an array.", hint=hint)
    connected = _Connection(api_url, boto_session)
    answer = connected.api.add_job(with_conditions(parsed, after))
    _warn(answer)
    return connected.handle(answer.get("job") or {})


class ArrayOptions(TypedDict, total=False):
    """None, or left out: the default."""

    tasks: str | None
    """Indices, such as ``0-63``, ``1-7:2``, ``1,3,5``, or with a throttle ``0-63%8``. Default: one a row of
    values, from 0 on."""
    at_most: int | None
    """Tasks that may run at once. Default: as many as fit."""
    stop_after_failures: int | None
    """Equal failures in a row, before any task completed, that hold the array. Default 10; 0: never."""
    after: Conditions | None
    """Jobs and arrays that it waits for; ``aftercorr:NAME`` waits index by index."""
    job_name: str | None
    """Name of the array, for estimators of the SDK v2. A request has its own."""


def submit_array(
    source: Any,  # noqa: ANN401  a request, or an estimator of an SDK
    *,
    values: GivenValues | None = None,
    inputs: Any = None,  # noqa: ANN401  as the SDK takes them
    api_url: str | None = None,
    boto_session: boto3.Session | None = None,
    **options: Unpack[ArrayOptions],
) -> JobArray:
    """Queue many tasks of one request or estimator, each with values of its own.

    Args:
        source: A CreateTrainingJob request as boto3 takes it, an estimator of the SDK v2, or a ModelTrainer
            of v3. An estimator trains through the queue from then on.
        values: Hyperparameters of each task: a list of rows, or a list a name. An estimator writes them as it
            writes its own; in a request numbers become text.
        inputs: An estimator's inputs, as ``fit()`` or ``train()`` takes them.
        api_url: URL of the API; else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``.
        boto_session: Session whose credentials sign; None: an estimator's own, else boto3's default.
        options: See ``ArrayOptions``.

    Raises:
        InvalidOptionsError: Values do not fit the tasks or the hyperparameters; nothing was sent.
        RefusedError: As ``ApiClient.add_array`` raises it.
    """
    unknown = sorted(set(options) - set(ArrayOptions.__annotations__))
    if unknown:
        hint = f"Use {', '.join(ArrayOptions.__annotations__)}."
        raise InvalidArgumentError(f"{unknown[0]!r} is not an option of arrays.", hint=hint)
    wish = ArrayWish(
        tasks=options.get("tasks"),
        values=values,
        at_most=options.get("at_most"),
        stop_after_failures=options.get("stop_after_failures"),
        after=options.get("after"),
    )
    job_name = options.get("job_name")
    if is_estimator(source):
        connected = _Connection(api_url, boto_session or source.sagemaker_session.boto_session)
        answer = train_as_array(source, wish, inputs=inputs, job_name=job_name, api_url=connected.api.api_url)
        return connected.array(answer.get("array") or {})
    if inputs is not None or job_name is not None:
        hint = "They are for estimators; a request has InputDataConfig and TrainingJobName."
        raise InvalidArgumentError("inputs and job_name do not belong to a request.", hint=hint)
    body = array_body(_parsed(source), wish)
    connected = _Connection(api_url, boto_session)
    answer = connected.api.add_array(body, key=new_key())
    _warn(answer)
    return connected.array(answer.get("array") or {})


def array(name: str, *, api_url: str | None = None, boto_session: boto3.Session | None = None) -> JobArray:
    """Look up an array by its name. Raises NotFoundError."""
    connected = _Connection(api_url, boto_session)
    return connected.array(connected.api.array(name))


def _parsed(request: Mapping[str, Any]) -> dict[str, Any]:
    parsed = request_of(request, source="the request")
    for note in parsed.notes:
        print(f"Note: {note}", flush=True)
    return parsed.request


def _warn(answer: Document) -> None:
    for warning in answer.get("warnings") or ():
        print(f"Warning: {field_problem(warning)}", flush=True)


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

    def array(self, document: Document) -> JobArray:
        return JobArray(self.api, document, make_client=partial(plain_client, self._session))

    def documents(self, filters: Mapping[str, Parameter]) -> Iterator[Document]:
        token: str | None = None
        while True:
            page = self.api.jobs(**filters, limit=_PAGE, next_token=token)
            yield from (document for document in page.get("jobs") or () if document.get("name"))
            before, token = token, page.get("next_token")
            if not token or token == before:
                return
