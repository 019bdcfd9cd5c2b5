"""Calls of SageMaker that name an array: one training job to its caller, over all its tasks.

Create answers an ARN of the array's name, Describe its state, Stop cancels the whole. The tasks are training
jobs of their own, with names that follow from the array's.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from trainmaster_client.api import ApiClient, Document, new_key, request_id_of
from trainmaster_client.errors import (
    ConflictError,
    InvalidArgumentError,
    NotFoundError,
    TrainmasterClientError,
)
from trainmaster_client.hooks.array_description import array_description, of_all_tasks
from trainmaster_client.hooks.botocore_events import Answer, Where, answered, refused_as
from trainmaster_client.hooks.job_description import Description
from trainmaster_client.jobs.array_requests import ARRAY_TAG, Encode, TaskSelection, array_body, plain_text
from trainmaster_client.jobs.array_views import array_view
from trainmaster_client.jobs.queued_jobs import QueuedJobs, RecentlyUsed

ARN_KIND = ":training-job/"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTasks:
    """The tasks that the next request of an SDK becomes, and how that SDK writes their values."""

    selection: TaskSelection
    encode: Encode
    answers: list[Document] = field(default_factory=list)
    """Answers of the API, as they come."""
    errors: list[TrainmasterClientError] = field(default_factory=list)
    """Refusals, which the SDK would show as its own."""


WANTED: ContextVar[WantedTasks | None] = ContextVar("wanted_tasks", default=None)
"""Set while an estimator of an SDK trains, where its request is to be an array's."""


@contextmanager
def wanting(wanted: WantedTasks) -> Iterator[None]:
    """Turn requests made in the block into the array; an error is ours, not the SDK's about it."""
    token = WANTED.set(wanted)
    try:
        yield
    except Exception:
        if wanted.errors:
            raise wanted.errors[-1] from None
        raise
    finally:
        WANTED.reset(token)


def wanting_tasks(selection: TaskSelection) -> AbstractContextManager[None]:
    """Turn requests made in the block into an array of these tasks; an empty selection changes nothing."""
    if selection == TaskSelection():
        return nullcontext()
    return wanting(WantedTasks(selection=selection, encode=plain_text))


class ArrayCalls:
    """Answers for the arrays of one caller. Threads may share it."""

    def __init__(self, api: ApiClient, queued: QueuedJobs) -> None:
        self._api = api
        self._queued = queued
        self._arrays = QueuedJobs(api, read=api.array)
        self._requests = RecentlyUsed[Document]()

    def add(self, request: Mapping[str, Any], *, key: str | None = None) -> Document:
        """Queue a request: as the array that the program around this call wants, or else as it stands.

        ``key`` and errors are the API client's. Raises InvalidOptionsError for values that do not fit.
        """
        wanted = WANTED.get()
        if wanted is None:
            answer = self._api.add_job(request, key=key)
        else:
            answer = self._add_wanted(request, wanted, key=key)
        if array := answer.get("array"):
            self.submitted(array, request)
        return answer

    def _add_wanted(self, request: Mapping[str, Any], wanted: WantedTasks, *, key: str | None) -> Document:
        try:
            body = array_body(request, wanted.selection, wanted.encode)
            answer = self._api.add_array(body, key=new_key() if key is None else key)
        except TrainmasterClientError as error:
            wanted.errors.append(error)
            raise
        wanted.answers.append(answer)
        return answer

    def submitted(self, document: Document, request: Mapping[str, Any]) -> None:
        """Note an array that this process submitted or changed, so that the next look reads it."""
        self._arrays.submitted(document)
        if request:
            self._requests.keep(str(document.get("name")), dict(request))

    def find(self, name: str) -> Document | None:
        """Return the array with this name; None if it is a job's, or nobody's.

        Call it after ``QueuedJobs.find``, which learns whether the name is an array's. Raises what that does.
        """
        is_known = self._queued.is_array(name) or self._requests.get(name) is not None
        return self._arrays.find(name) if is_known else None

    def answer(self, operation: str, body: Document, where: Where, *, partition: str) -> Answer | None:
        """Answer a call that no job of the queue is meant by; None if no array is, either."""
        name = body.get("TrainingJobName") or str(body.get("ResourceArn") or "").partition(ARN_KIND)[2]
        document = self.find(name) if name else None
        if document is None:
            return None
        request_id = request_id_of(document)
        match operation:
            case "DescribeTrainingJob":
                answer = self.described(name, document, where, partition=partition)
                return answered(answer, request_id=request_id)
            case "StopTrainingJob":
                return self._stop(name)
            case "ListTags":
                tags = deepcopy(list(self.request(name).get("Tags") or ()))
                kept = [tag for tag in tags if tag.get("Key") != ARRAY_TAG]
                return answered({"Tags": kept}, request_id=request_id)
            case "UpdateTrainingJob" | "AddTags" | "DeleteTags":
                return refused_as("ValidationException", _not_of_an_array(name, operation))
            case _:
                return None

    def described(self, name: str, document: Document, where: Where, *, partition: str) -> Description:
        """Describe an array as one training job."""
        request = self.request(name)
        arn = arn_of(name, request, region=where.region, partition=partition)
        return array_description(array_view(document), document, request, arn=arn)

    def _stop(self, name: str) -> Answer:
        try:
            document = self._api.cancel_array(name)
        except ConflictError as error:
            return refused_as("ValidationException", error)  # SageMaker's for a job that has ended
        self.submitted(document, {})
        return answered({}, request_id=request_id_of(document))

    def request(self, name: str) -> Document:
        """Return the request of all tasks: as it was submitted here, or made from that of the first task."""
        known = self._requests.get(name)
        if known is not None:
            return known
        try:
            first = self._api.first_task(name)
            task = {} if first is None else self._api.job(str(first["name"]), estimate=False, request=True)
        except NotFoundError:
            return {}
        request = of_all_tasks(task.get("request") or {}, name=name)
        self._requests.keep(name, request)
        return request


def arn_of(name: str, request: Mapping[str, Any], *, region: str, partition: str) -> str:
    """Make the ARN of the training job with this name, in the account of the request's role."""
    account = (str(request.get("RoleArn")).split(":") + [""] * 5)[4]
    return f"arn:{partition}:sagemaker:{region}:{account}{ARN_KIND}{name}"


def _not_of_an_array(name: str, operation: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name} is an array of jobs, and {operation} is about one training job.",
        hint=f"Name one of its tasks, like {name}-0, or use: trainmaster arrays {name}",
    )
