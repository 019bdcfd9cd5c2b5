"""What a call of SageMaker comes to at the gateway: answered by the queue's hooks, or passed on."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.hooks import HierarchicalEmitter

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import ApiUnreachableError, GatewayRefusedError, TrainmasterClientError
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.gateway.credential_chain import EXPIRED_CODES, RenewedCredentials
from trainmaster_client.gateway.json_protocol import (
    CallRefusedError,
    Reply,
    answer,
    error,
    hooked,
    operation_of,
    request_of,
)
from trainmaster_client.gateway.passed_calls import SageMakerEndpoint
from trainmaster_client.gateway.training_job_lists import has_queued, summary_of
from trainmaster_client.hooks.botocore_events import refusal
from trainmaster_client.hooks.training_job_calls import QueueHooks
from trainmaster_client.http.answers import Answer, trouble_of
from trainmaster_client.http.bounded_answers import UnboundedAnswerError, whole_body
from trainmaster_client.jobs import merged_lists as lists
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.merged_lists import TRAINING_JOBS

LISTED_SECONDS = 5.0
"""How long a list of the queue's unfinished jobs is taken for true: a reader asks for page after page."""
_LARGEST_PAGE = "100"
"""Jobs; the most the API gives at once."""
_EMPTY_PAGES = 10
"""Of SageMaker, read on where all of a page are jobs of the queue, which stand elsewhere in the list."""
_CHANGES = frozenset({"CreateTrainingJob", "StopTrainingJob"})
_LOOKS_AT_ONCE = 8
"""Stopped training jobs of a page, each of which may be an attempt of a job that goes on or went on."""


class RenewingApi(ApiClient):
    """Where the credentials have expired, the chain is walked for others, and the call made again, once."""

    credentials: RenewedCredentials

    def _call(self, *arguments: Any, **options: Any) -> Document:  # noqa: ANN401  as they are
        signed_with = self.credentials.get_frozen_credentials()
        try:
            return super()._call(*arguments, **options)
        except GatewayRefusedError as refused:
            if refused.trouble is not Trouble.EXPIRED_CREDENTIALS:
                raise
        self.credentials.renew(refused=signed_with)
        return super()._call(*arguments, **options)

    def passed_on(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """What the API says, refusals included. Raises ApiUnreachableError and CredentialsError.

        Args:
            method: Of the call.
            target: Path and query, percent-encoded.
            body: None: it has none.
            headers: Beside those that every call has.
        """
        signed_with = self.credentials.get_frozen_credentials()
        answer = self._transport.send(method, target, body, headers)
        if trouble_of(answer, now=datetime.now(UTC)) is not Trouble.EXPIRED_CREDENTIALS:
            return answer
        self.credentials.renew(refused=signed_with)
        return self._transport.send(method, target, body, headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class SageMakerCall:
    operation: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    request: Document
    """The body, parsed."""
    request_id: str


class QueuedCalls:
    """Answers in SageMaker's place. Threads may share it.

    The hooks are those of ``install()``, called by the events that a client of boto3 calls them by.
    """

    def __init__(
        self,
        hooks: QueueHooks,
        endpoint: SageMakerEndpoint,
        credentials: RenewedCredentials,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hooks = hooks
        self._endpoint = endpoint
        self._credentials = credentials
        self._events = HierarchicalEmitter()
        self._unfinished = _Unfinished(hooks, monotonic)
        self._arn_prefix = ""
        hooks.register(self._events)

    def answer(self, headers: Mapping[str, str], body: bytes) -> tuple[str, Reply]:
        """The operation's name, empty where there is none, and the answer. Refusals are answers, too."""
        request_id, operation = str(uuid.uuid4()), ""
        try:
            operation = operation_of(headers.get("x-amz-target", ""))
            request = request_of(operation, body)
            call = SageMakerCall(
                operation=operation, headers=headers, body=body, request=request, request_id=request_id
            )
            return operation, self._renewed(call)
        except CallRefusedError as refused:
            status = refused.status
            return operation, error(refused.code, str(refused), status=status, request_id=request_id)
        except TrainmasterClientError as trouble:
            return operation, hooked(refusal(trouble)[1], request_id=request_id)
        except ClientError as said:
            return operation, _repeated(said, request_id)
        except BotoCoreError as trouble:  # of a connection
            unreachable = ApiUnreachableError(self._endpoint.url, why=f"{trouble}.")
            return operation, hooked(refusal(unreachable)[1], request_id=request_id)

    def _renewed(self, call: SageMakerCall) -> Reply:
        """Hooks describe attempts with clients of boto3, which say by their own error that keys expired."""
        signed_with = self._credentials.get_frozen_credentials()
        try:
            return self._answered(call)
        except ClientError as said:
            if said.response["Error"]["Code"] not in EXPIRED_CODES:
                raise
        self._credentials.renew(refused=signed_with)
        return self._answered(call)

    def _answered(self, call: SageMakerCall) -> Reply:
        if call.operation == "ListTrainingJobs" and has_queued(call.request):
            return self._list(call)
        if call.operation == "UpdateTrainingJob":
            return self._update(call)
        parsed = self._hook(call.operation, call.body)
        if call.operation in _CHANGES:
            self._unfinished.forget()
        if parsed is not None:
            return hooked(parsed, request_id=call.request_id)
        assert call.operation != "CreateTrainingJob", "a training job never bypasses the queue"
        return self._endpoint.send(call.headers, call.body)

    def _hook(self, operation: str, body: bytes) -> Mapping[str, Any] | None:
        """What a hook says; None: the call is SageMaker's."""
        _, found = self._events.emit_until_response(
            f"before-call.sagemaker.{operation}",
            model=_Operation(name=operation),
            params={"url": f"{self._endpoint.url}/", "body": body},
            context={"client_region": self._hooks.api.region},
        )
        return None if found is None else found[1]

    def _update(self, call: SageMakerCall) -> Reply:
        """Of the training job that the job is right now; while it waits there is none."""
        name = call.request["TrainingJobName"]
        document = self._hooks.queued.find(name)
        job = None if document is None else job_view(document)
        if job is None or job.name != name or job.is_final:
            return self._endpoint.send(call.headers, call.body)
        if job.is_waiting or not job.training_job_name:
            raise CallRefusedError(
                "ValidationException",
                f"{name} waits in the queue ({job.state}): there is nothing to update before it runs.",
            )
        body = json.dumps({**call.request, "TrainingJobName": job.training_job_name}).encode()
        return self._endpoint.send(call.headers, body)

    def _list(self, call: SageMakerCall) -> Reply:
        request = call.request
        size, token = lists.page_size(request), request.get("NextToken")
        queued = [summary_of(job, arn_prefix=self._prefix(job)) for job in self._unfinished.jobs()]
        unfinished = {one["TrainingJobName"] for one in queued}
        wanted = list(lists.wanted(TRAINING_JOBS, queued, request))
        for _ in range(_EMPTY_PAGES):
            cursor = lists.Cursor.read(token, size=size)
            theirs = {} if cursor.is_at_end else self._listed(call, cursor)
            if isinstance(theirs, Reply):
                return theirs
            page = lists.merged(TRAINING_JOBS, cursor, theirs, wanted, request)
            token = page.next_token
            if page.summaries or not token:
                break
        entries = list(lists.wanted(TRAINING_JOBS, self._corrected(page.summaries, unfinished), request))
        document = {"TrainingJobSummaries": entries, **({"NextToken": token} if token else {})}
        return answer(document, request_id=call.request_id)

    def _listed(self, call: SageMakerCall, cursor: lists.Cursor) -> Document | Reply:
        """SageMaker's page, or its refusal."""
        asked = {**call.request, "NextToken": cursor.sagemaker, "MaxResults": cursor.size}
        body = json.dumps({name: value for name, value in asked.items() if value is not None}).encode()
        reply = self._endpoint.send({**call.headers, "accept-encoding": "identity"}, body)
        if isinstance(reply.body, bytes):
            return reply
        try:
            found: Document = json.loads(whole_body(reply.body))
        except UnboundedAnswerError as error:
            raise ApiUnreachableError(self._endpoint.url, why=f"{error}.") from error
        return found

    def _corrected(self, entries: Iterable[lists.Summary], unfinished: set[str]) -> Iterable[lists.Summary]:
        """A stopped training job may be the first attempt of a job that ended otherwise."""
        with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
            return list(pool.map(lambda one: self._as_described(one, unfinished), entries))

    def _as_described(self, entry: lists.Summary, unfinished: set[str]) -> lists.Summary:
        name = entry["TrainingJobName"]
        if entry["TrainingJobStatus"] != "Stopped" or name in unfinished:
            return entry
        body = json.dumps({"TrainingJobName": name}).encode()
        found = self._hook("DescribeTrainingJob", body)
        if found is None or "Error" in found:
            return entry
        said = json.loads(json.dumps(dict(found), default=lambda at: at.timestamp()))
        return {**entry, **{key: said[key] for key in (*entry, "TrainingEndTime") if key in said}}

    def _prefix(self, job: JobView) -> str:
        """Of the ARNs of training jobs: the stack's account is that of each job's role."""
        if not self._arn_prefix:
            body = json.dumps({"TrainingJobName": job.name}).encode()
            found = self._hook("DescribeTrainingJob", body) or {}
            self._arn_prefix = str(found.get("TrainingJobArn") or "").rpartition("/")[0]
        return f"{self._arn_prefix}/" if self._arn_prefix else ""


class _Unfinished:
    """The queue's jobs that have not ended and that this caller may see, asked for once in a while."""

    def __init__(self, hooks: QueueHooks, monotonic: Callable[[], float]) -> None:
        self._hooks = hooks
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
        """Something was changed by this caller, who wants to see it."""
        self._fresh_until = float("-inf")

    def _all(self) -> Iterable[Document]:
        token: str | None = None
        while True:
            page = self._hooks.api.jobs(limit=_LARGEST_PAGE, next_token=token)
            yield from page.get("jobs") or ()
            before, token = token, page.get("next_token")
            if not token or token == before:
                return


@dataclass(frozen=True, slots=True)
class _Operation:
    """All that the hooks read of botocore's model of an operation."""

    name: str


def _repeated(said: ClientError, request_id: str) -> Reply:
    """AWS's own refusal of what a hook asked of it."""
    status = int(said.response["ResponseMetadata"].get("HTTPStatusCode") or HTTPStatus.BAD_REQUEST)
    found = said.response["Error"]
    return error(found["Code"], found["Message"], status=status, request_id=request_id)
