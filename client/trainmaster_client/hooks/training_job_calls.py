"""What intercepts CreateTrainingJob and its sisters: submitted, described, stopped as jobs of the queue."""

import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import boto3
from botocore.exceptions import ClientError
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
from trainmaster_client.hooks.hooked_events import SEEN, TUNING_OPERATIONS
from trainmaster_client.hooks.job_description import Description, description
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.progress import place_line
from trainmaster_client.jobs.queued_jobs import QueuedJobs, RecentlyUsed

if TYPE_CHECKING:
    from trainmaster_client.hooks.tuning_job_calls import TuningCalls

OnUnreachable: TypeAlias = Literal["raise", "direct"]

_log = logging.getLogger("trainmaster")
_ARN_KIND = ":training-job/"
TUNING_ARN_KIND = ":hyper-parameter-tuning-job/"
_STARTS = {
    "CreateTrainingJob": "TrainingJobName",
    "CreateHyperParameterTuningJob": "HyperParameterTuningJobName",
}
"""What starts training, and its name for what it starts."""
_ENDED = frozenset({"Completed", "Failed", "Stopped"})
_NOT_THERE = frozenset({"ValidationException", "ResourceNotFound"})
"""Describe's codes for a name that it does not know. Source: SageMaker API reference, Common Errors."""


def hooks_of(
    boto_session: boto3.Session, *, api_url: str | None, on_unreachable: OnUnreachable = "raise"
) -> "QueueHooks":
    """Raises ApiNotConfiguredError, and InvalidArgumentError for another ``on_unreachable``."""
    check_on_unreachable(on_unreachable)
    api = ApiClient(find_api_url(api_url, boto_session), boto_session)
    return QueueHooks(boto_session, api, is_direct=on_unreachable == "direct")


def check_on_unreachable(value: str) -> None:
    """Raises InvalidArgumentError."""
    if value not in {"raise", "direct"}:
        raise InvalidArgumentError(f"on_unreachable={value!r} is not valid.", hint="Use 'raise' or 'direct'.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What a client was about to ask of SageMaker."""

    body: dict[str, Any]
    where: Where


class QueueHooks:
    """The handlers of one caller of one API, and what they know."""

    def __init__(self, boto_session: boto3.Session, api: ApiClient, *, is_direct: bool = False) -> None:
        self.api = api
        self.queued = QueuedJobs(api)
        self._session = boto_session
        self._is_direct = is_direct
        self._attempts = AttemptDescriptions()
        self._bypasses = Bypasses()
        self._clients = PlainClients(boto_session)
        self._sdk_v3_logs = SdkV3Logs(self.register_readers, region=api.region)
        self._tuning_calls: TuningCalls | None = None
        self._making = threading.Lock()
        self._names = RecentlyUsed[str]()
        """Of jobs by the ARNs that descriptions had: an ARN need not spell a name as it was submitted."""

    def register(self, events: Any) -> None:  # noqa: ANN401  botocore's emitters
        """All handlers, at the events of a boto3 session or of one client."""
        for event, handler in self.handlers():
            register(events, event, handler)

    def handlers(self) -> Iterator[tuple[str, Handler]]:
        """By event, one for each of ``HOOKED_EVENTS``."""
        for operation, handle in (
            ("CreateTrainingJob", self._create),
            ("DescribeTrainingJob", self._describe),
            ("StopTrainingJob", self._stop),
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
        """Only what joins logs and metrics of attempts, and finds STS."""
        cloudwatch_calls.register(events, self.queued, self._clients, region=self.api.region)
        identity_calls.register(events, self._clients)

    def submit(self, request: Mapping[str, Any]) -> Document:
        """The answer of the API, with the job and warnings. Raises what the API client raises."""
        answer = self.api.add_job(request)
        self.queued.submitted(answer.get("job") or {})
        return answer

    def _handle(
        self,
        handle: Callable[[_Call], Answer | None],
        params: Mapping[str, Any],
        context: dict[str, Any],
        model: OperationModel,
        **_: object,
    ) -> Answer | None:
        """None: the call goes on to SageMaker."""
        context[SEEN] = True
        where = Where.called(params["url"], context)
        if where.region != self.api.region:
            if model.name in _STARTS:
                self._bypasses.training_in(where.region, model.name, queue=self.api.region)
            return None
        call = _Call(body=json.loads(params["body"]), where=where)
        try:
            return handle(call)
        except ApiUnreachableError as error:
            if not self._is_direct:
                return refusal(error)
            if model.name in _STARTS:
                message = f"{call.body[_STARTS[model.name]]} bypasses the queue: {error}"
                warnings.warn(message, QueueBypassWarning, stacklevel=2)
            return None
        except TrainmasterClientError as error:
            return refusal(error)

    def _create(self, call: _Call) -> Answer:
        answer = self.submit(call.body)
        for warning in answer.get("warnings") or ():
            _log.warning("%s: %s", call.body["TrainingJobName"], field_problem(warning))
        job = job_view(answer.get("job") or {})
        _log.info("%s is %s. %s", job.name, job.state, place_line(job) if job.is_waiting else "")
        arn = self._arn(job, call.body, call.where.region)
        return answered({"TrainingJobArn": arn}, request_id=request_id_of(answer))

    def _describe(self, call: _Call) -> Answer | None:
        name = call.body["TrainingJobName"]
        document = self.queued.find(name)
        job = None if document is None else job_view(document)
        if job is None or job.name != name:
            return None
        self._sdk_v3_logs.join()
        # a copy: callers change what they got, to submit it again
        return answered(deepcopy(self.described(job, call.where)), request_id=request_id_of(document))

    def described(self, job: JobView, where: Where) -> Description:
        """Over all attempts, as SageMaker at that place has them."""
        name = str(job.name)
        attempts = self._attempts.of(job, self._clients.of("sagemaker", where))
        request = {} if attempts else self.queued.request(name)
        found = description(job, request, attempts, arn=self._arn(job, request, where.region))
        self._names.keep(found["TrainingJobArn"], name)
        return found

    def _stop(self, call: _Call) -> Answer | None:
        """Of a name of any attempt: to stop an attempt is to take its job out of the queue."""
        job = self._job(call.body["TrainingJobName"])
        if job is None:
            return None
        try:
            document = self.api.cancel(str(job.name))
        except ConflictError as error:
            return refused_as("ValidationException", error)  # SageMaker's for one that has ended
        self.queued.submitted(document)
        return answered({}, request_id=request_id_of(document))

    def _list_tags(self, call: _Call) -> Answer | None:
        """Those that were submitted, with or without an attempt: whoever attaches to a job may fit it again.

        The tags that the queue adds to its training jobs are refused in a request.
        """
        arn = call.body["ResourceArn"]
        if TUNING_ARN_KIND in arn:
            return self.tuning().tags(arn.partition(TUNING_ARN_KIND)[2], call.where)
        document = self._of_arn(arn)
        if document is None:
            return None
        tags = deepcopy(self.queued.request(str(job_view(document).name)).get("Tags") or [])
        return answered({"Tags": tags}, request_id=request_id_of(document))

    def _change_tags(self, call: _Call) -> Answer | None:
        """Of the training job that runs or ran. While a job waits there is none, or one that is over."""
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
        """The job whose training job this is, or will be."""
        _, kind, tail = arn.partition(_ARN_KIND)
        return self.queued.find(self._names.get(arn) or tail) if kind else None

    def _tune(self, operation: str, call: _Call) -> Answer | None:
        return self.tuning().answer(operation, call.body, call.where)

    def tuning(self) -> "TuningCalls":
        """Made at its first need."""
        from trainmaster_client.hooks.tuning_job_calls import TuningCalls  # noqa: PLC0415  few programs tune

        with self._making:
            if self._tuning_calls is None:
                self._tuning_calls = TuningCalls(self._session, self, self._clients)
            return self._tuning_calls

    def _job(self, name: str) -> JobView | None:
        document = self.queued.find(name)
        return None if document is None else job_view(document)

    def _arn(self, job: JobView, request: Mapping[str, Any], region: str) -> str:
        """Of the training job with the submitted name, which its first attempt is or will be."""
        account = (str(request.get("RoleArn")).split(":") + [""] * 5)[4]
        partition = self._session.get_partition_for_region(region)
        return f"arn:{partition}:sagemaker:{region}:{account}{_ARN_KIND}{job.name}"


class AttemptDescriptions:
    """What SageMaker says of a job's attempts; of those that are over it is asked once."""

    def __init__(self) -> None:
        self._over = RecentlyUsed[Description]()

    def of(self, job: JobView, client: Any) -> dict[int, Description]:  # noqa: ANN401  boto3's
        """By number of the attempt; those that SageMaker never had, or has no more, are not in it.

        Args:
            job: With its attempts. One that SageMaker did not confirm may be a stranger's training job.
            client: For SageMaker, without our handlers. Its errors are raised as they are.
        """
        names = {one.number: one.training_job_name for one in job.attempts if one.training_job_arn}
        found = {number: self._description(name, client) for number, name in names.items()}
        return {number: one for number, one in found.items() if one is not None}

    def _description(self, name: str, client: Any) -> Description | None:  # noqa: ANN401  boto3's
        over = self._over.get(name)
        if over is not None:
            return over
        try:
            answer: Description = client.describe_training_job(TrainingJobName=name)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return None
            raise
        if answer["TrainingJobStatus"] in _ENDED:
            self._over.keep(name, answer)
        return answer
