"""Intercept CreateTrainingJob and its sisters: jobs are submitted, described and stopped in the queue."""

import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import boto3
from botocore.model import OperationModel

from trainmaster_client.api import ApiClient, Document, field_problem, find_api_url, request_id_of
from trainmaster_client.bypasses import Bypasses, QueueBypassWarning
from trainmaster_client.errors import (
    ApiUnreachableError,
    ConflictError,
    InvalidArgumentError,
    TrainmasterClientError,
)
from trainmaster_client.hooks import cloudwatch_calls, identity_calls
from trainmaster_client.hooks.array_calls import ARN_KIND, ArrayCalls, arn_of
from trainmaster_client.hooks.attempt_descriptions import AttemptDescriptions
from trainmaster_client.hooks.botocore_events import (
    Answer,
    Handler,
    PlainClients,
    SdkV3Logs,
    Where,
    answered,
    refusal,
    refused_as,
    register,
)
from trainmaster_client.hooks.hooked_events import KEY, SEEN, TUNING_OPERATIONS
from trainmaster_client.hooks.intercepted_calls import InterceptedCall, answered_patiently
from trainmaster_client.hooks.job_description import Description, description
from trainmaster_client.hooks.training_job_lists import TrainingJobLists
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.progress import place_line
from trainmaster_client.jobs.queued_jobs import QueuedJobs, RecentlyUsed

if TYPE_CHECKING:
    from trainmaster_client.hooks.tuning_job_calls import TuningCalls

OnUnreachable: TypeAlias = Literal["raise", "direct"]

_log = logging.getLogger("trainmaster")
TUNING_ARN_KIND = ":hyper-parameter-tuning-job/"
_STARTS = {
    "CreateTrainingJob": "TrainingJobName",
    "CreateHyperParameterTuningJob": "HyperParameterTuningJobName",
}
"""Operations that start training, each with the member that names what it starts."""
ARRAY_OPERATIONS = frozenset(
    {"DescribeTrainingJob", "StopTrainingJob", "UpdateTrainingJob", "ListTags", "AddTags", "DeleteTags"}
)
"""Operations that may name an array."""
_CHANGES = frozenset({"CreateTrainingJob", "StopTrainingJob"})
"""Operations whose caller expects to see their effect in the next list."""


def hooks_of(
    boto_session: boto3.Session, *, api_url: str | None, on_unreachable: OnUnreachable = "raise"
) -> "QueueHooks":
    """Make a session's hooks. Raises ApiNotConfiguredError, and InvalidArgumentError for a bad option."""
    check_on_unreachable(on_unreachable)
    api = ApiClient(find_api_url(api_url, boto_session), boto_session)
    return QueueHooks(boto_session, api, is_direct=on_unreachable == "direct")


def check_on_unreachable(value: str) -> None:
    """Raises InvalidArgumentError for any value but ``raise`` and ``direct``."""
    if value not in {"raise", "direct"}:
        raise InvalidArgumentError(f"on_unreachable={value!r} is not valid.", hint="Use 'raise' or 'direct'.")


class QueueHooks:
    """The handlers of one caller of one API, and what they know."""

    def __init__(self, boto_session: boto3.Session, api: ApiClient, *, is_direct: bool = False) -> None:
        self.api = api
        self.queued = QueuedJobs(api)
        self.arrays = ArrayCalls(api, self.queued)
        self._session = boto_session
        self._is_direct = is_direct
        self._attempts = AttemptDescriptions()
        self._bypasses = Bypasses()
        self._clients = PlainClients(boto_session)
        self._lists = TrainingJobLists(api, self._clients, self._described_by_name)
        self._sdk_v3_logs = SdkV3Logs(self.register_readers, region=api.region)
        self._tuning_calls: TuningCalls | None = None
        self._making = threading.Lock()
        self._names = RecentlyUsed[str]()
        """Names of jobs by their described ARNs: an ARN need not spell a name as it was submitted."""

    def register(self, events: Any) -> None:  # noqa: ANN401  botocore's emitters
        """Register all handlers, at the events of a boto3 session or of one client."""
        for event, handler in self.handlers():
            register(events, event, handler)

    def handlers(self) -> Iterator[tuple[str, Handler]]:
        """Yield each handler with its event, one for each of ``HOOKED_EVENTS``."""
        for operation, handle in (
            ("CreateTrainingJob", self._create),
            ("DescribeTrainingJob", self._describe),
            ("ListTrainingJobs", lambda call: self._lists.answer(call.body, call.where)),
            ("StopTrainingJob", self._stop),
            ("UpdateTrainingJob", self._update),
            ("ListTags", self._list_tags),
            ("AddTags", self._change_tags),
            ("DeleteTags", self._change_tags),
        ):
            yield f"before-call.sagemaker.{operation}", partial(self._handle, handle)
        for operation in TUNING_OPERATIONS:
            tune = partial(self._tune, operation)
            yield f"before-call.sagemaker.{operation}", partial(self._handle, tune)
        yield from self._bypasses.handlers()
        yield from cloudwatch_calls.handlers(self.queued, self._clients, region=self.api.region)
        yield from identity_calls.handlers(self._clients)

    def register_readers(self, events: Any) -> None:  # noqa: ANN401  botocore's emitters
        """Register only the handlers that join logs and metrics of attempts, and those that find STS."""
        cloudwatch_calls.register(events, self.queued, self._clients, region=self.api.region)
        identity_calls.register(events, self._clients)

    def submit(self, request: Mapping[str, Any], *, key: str | None = None) -> Document:
        """Return the API's answer, with the job and warnings. ``key`` and errors are the API client's."""
        answer = self.arrays.add(request, key=key)
        self._lists.forget()
        if "array" not in answer:
            self.queued.submitted(answer.get("job") or {})
        return answer

    def _handle(
        self,
        handle: Callable[[InterceptedCall], Answer | None],
        params: MutableMapping[str, Any],
        context: dict[str, Any],
        model: OperationModel,
        **_: object,
    ) -> Answer | None:
        """Answer a call by its handler; None if the call goes on to SageMaker."""
        context[SEEN] = True
        where = Where.called(params["url"], context)
        if where.region != self.api.region:
            if model.name in _STARTS:
                self._bypasses.training_in(where.region, model.name, queue=self.api.region)
            return None
        call = InterceptedCall(
            operation=model.name,
            body=json.loads(params["body"]),
            where=where,
            key=context.get(KEY),
            sent=params,
        )
        try:
            return answered_patiently(partial(self._answered, handle), call, self._session)
        except ApiUnreachableError as error:
            if not self._is_direct:
                return refusal(error)
            if model.name in _STARTS:
                message = f"{call.body[_STARTS[model.name]]} bypasses the queue: {error}"
                warnings.warn(message, QueueBypassWarning, stacklevel=2)
            return None
        except TrainmasterClientError as error:
            return refusal(error)
        finally:
            if model.name in _CHANGES:
                self._lists.forget()

    def _answered(
        self, handle: Callable[[InterceptedCall], Answer | None], call: InterceptedCall
    ) -> Answer | None:
        """Answer for the job that the call names, or else for the array."""
        answer = handle(call)
        if answer is not None or call.operation not in ARRAY_OPERATIONS:
            return answer
        partition = self._partition(call.where.region)
        return self.arrays.answer(call.operation, call.body, call.where, partition=partition)

    def _partition(self, region: str) -> str:
        return self._session.get_partition_for_region(region)

    def _create(self, call: InterceptedCall) -> Answer:
        answer = self.submit(call.body, key=call.key)
        for warning in answer.get("warnings") or ():
            _log.warning("%s: %s", call.body["TrainingJobName"], field_problem(warning))
        job = job_view(answer.get("job") or answer.get("array") or {})
        _log.info("%s is %s. %s", job.name, job.state, place_line(job) if job.is_waiting else "")
        arn = self._arn(str(job.name), call.body, call.where.region)
        return answered({"TrainingJobArn": arn}, request_id=request_id_of(answer))

    def _submitted_as(self, name: str) -> Document | None:
        """Return the job that was submitted under this very name; None if the queue has none."""
        document = self.queued.find(name)
        return document if document is not None and job_view(document).name == name else None

    def _described_by_name(self, name: str, where: Where) -> Description | None:
        document = self._submitted_as(name)
        return None if document is None else self.described(job_view(document), where)

    def _describe(self, call: InterceptedCall) -> Answer | None:
        document = self._submitted_as(call.body["TrainingJobName"])
        if document is None:
            return None
        self._sdk_v3_logs.join()
        answer = self.described(job_view(document), call.where)
        # a copy: callers change what they got, to submit it again
        return answered(deepcopy(answer), request_id=request_id_of(document))

    def described(self, job: JobView, where: Where) -> Description:
        """Describe the job over all attempts, as SageMaker at that place knows them."""
        name = str(job.name)
        attempts = self._attempts.of(job, self._clients.of("sagemaker", where))
        request = {} if attempts else self.queued.request(name)
        answer = description(job, request, attempts, arn=self._arn(name, request, where.region))
        self._names.keep(answer["TrainingJobArn"], name)
        return answer

    def _stop(self, call: InterceptedCall) -> Answer | None:
        """Cancel the job that any attempt's name belongs to: stopping an attempt stops its job."""
        known = self.queued.find(call.body["TrainingJobName"])
        if known is None:
            return None
        try:
            document = self.api.cancel(str(job_view(known).name))
        except ConflictError as error:
            return refused_as("ValidationException", error)  # SageMaker's for one that has ended
        self.queued.submitted(document)
        return answered({}, request_id=request_id_of(document))

    def _update(self, call: InterceptedCall) -> Answer | None:
        """Send the update to the training job that the job is right now; while it waits there is none."""
        name = call.body["TrainingJobName"]
        document = self._submitted_as(name)
        if document is None or (job := job_view(document)).is_final:
            return None
        if job.is_waiting or not job.training_job_name:
            error = InvalidArgumentError(
                f"{name} waits in the queue ({job.state}): there is nothing to update before it runs.",
                hint="Update it once it runs, or cancel it and submit it again under another name.",
            )
            return refused_as("ValidationException", error)
        call.sent["body"] = json.dumps({**call.body, "TrainingJobName": job.training_job_name}).encode()
        return None

    def _list_tags(self, call: InterceptedCall) -> Answer | None:
        """Return the tags that were submitted, even without an attempt.

        A program may submit them again; the tags that the queue adds would be refused in a request.
        """
        arn = call.body["ResourceArn"]
        if TUNING_ARN_KIND in arn:
            return self.tuning().tags(arn.partition(TUNING_ARN_KIND)[2], call.where)
        document = self._of_arn(arn)
        if document is None:
            return None
        tags = deepcopy(self.queued.request(str(job_view(document).name)).get("Tags") or [])
        return answered({"Tags": tags}, request_id=request_id_of(document))

    def _change_tags(self, call: InterceptedCall) -> Answer | None:
        """Change the tags of the training job that runs or ran; a waiting job has none that is alive."""
        document = self._of_arn(call.body["ResourceArn"])
        job = None if document is None else job_view(document)
        if job is None or not job.is_waiting:
            return None
        error = InvalidArgumentError(
            f"{job.name} waits in the queue ({job.state}): its tags are those that it was submitted with.",
            hint=f"Its priority changes with: trainmaster priority {job.name} N. For other tags cancel it "
            "and submit it again under another name.",
        )
        return refused_as("ValidationException", error)

    def _of_arn(self, arn: str) -> Document | None:
        """Return the job whose training job this is, or will be."""
        _, kind, tail = arn.partition(ARN_KIND)
        return self.queued.find(self._names.get(arn) or tail) if kind else None

    def _tune(self, operation: str, call: InterceptedCall) -> Answer | None:
        return self.tuning().answer(operation, call.body, call.where)

    def tuning(self) -> "TuningCalls":
        """Return the handlers of tuning jobs, made when they are first needed."""
        from trainmaster_client.hooks.tuning_job_calls import TuningCalls  # noqa: PLC0415  few programs tune

        with self._making:
            if self._tuning_calls is None:
                self._tuning_calls = TuningCalls(self._session, self, self._clients)
            return self._tuning_calls

    def _arn(self, name: str, request: Mapping[str, Any], region: str) -> str:
        """Make the ARN of the training job with the submitted name, which its first attempt is or will be."""
        return arn_of(name, request, region=region, partition=self._partition(region))
