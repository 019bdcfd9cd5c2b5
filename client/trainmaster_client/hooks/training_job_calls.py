"""What intercepts CreateTrainingJob and its sisters: submitted, described, stopped as jobs of the queue."""

import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from dataclasses import dataclass
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
from trainmaster_client.hooks.job_description import Description, description
from trainmaster_client.hooks.training_job_lists import TrainingJobLists
from trainmaster_client.http.expiry import CREDENTIAL_ERRORS, is_expired, renew, unusable
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
_CHANGES = frozenset({"CreateTrainingJob", "StopTrainingJob"})
"""After which its caller wants to see another list."""


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
    key: str | None
    """As ``ApiClient.add_job`` takes it; None: the call is not a gateway's."""
    sent: MutableMapping[str, Any]
    """What goes to SageMaker where no handler answers: its ``body`` may be replaced."""


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
        self._lists = TrainingJobLists(api, self._clients, self._described_by_name)
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
        """Only what joins logs and metrics of attempts, and finds STS."""
        cloudwatch_calls.register(events, self.queued, self._clients, region=self.api.region)
        identity_calls.register(events, self._clients)

    def submit(self, request: Mapping[str, Any], *, key: str | None = None) -> Document:
        """The answer of the API, with the job and warnings. ``key`` and errors are the API client's."""
        answer = self.api.add_job(request, key=key)
        self._lists.forget()
        self.queued.submitted(answer.get("job") or {})
        return answer

    def _handle(
        self,
        handle: Callable[[_Call], Answer | None],
        params: MutableMapping[str, Any],
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
        call = _Call(body=json.loads(params["body"]), where=where, key=context.get(KEY), sent=params)
        try:
            return self._renewed(handle, call)
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

    def _renewed(self, handle: Callable[[_Call], Answer | None], call: _Call) -> Answer | None:
        """Handle the call, again with new credentials where AWS called the old ones expired.

        A gateway renews its own. Raises ExpiredCredentialsError where there are no new ones.
        """
        try:
            return handle(call)
        except CREDENTIAL_ERRORS as error:
            if not is_expired(error) or call.key is not None:
                raise
            if renew(self._session):
                return handle(call)
            raise unusable(error) from error

    def _create(self, call: _Call) -> Answer:
        answer = self.submit(call.body, key=call.key)
        for warning in answer.get("warnings") or ():
            _log.warning("%s: %s", call.body["TrainingJobName"], field_problem(warning))
        job = job_view(answer.get("job") or {})
        _log.info("%s is %s. %s", job.name, job.state, place_line(job) if job.is_waiting else "")
        arn = self._arn(job, call.body, call.where.region)
        return answered({"TrainingJobArn": arn}, request_id=request_id_of(answer))

    def _submitted_as(self, name: str) -> Document | None:
        """The job that was submitted under this very name; None: the queue has none."""
        document = self.queued.find(name)
        return document if document is not None and job_view(document).name == name else None

    def _described_by_name(self, name: str, where: Where) -> Description | None:
        document = self._submitted_as(name)
        return None if document is None else self.described(job_view(document), where)

    def _describe(self, call: _Call) -> Answer | None:
        document = self._submitted_as(call.body["TrainingJobName"])
        if document is None:
            return None
        self._sdk_v3_logs.join()
        found = self.described(job_view(document), call.where)
        # a copy: callers change what they got, to submit it again
        return answered(deepcopy(found), request_id=request_id_of(document))

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
        found = self.queued.find(call.body["TrainingJobName"])
        if found is None:
            return None
        try:
            document = self.api.cancel(str(job_view(found).name))
        except ConflictError as error:
            return refused_as("ValidationException", error)  # SageMaker's for one that has ended
        self.queued.submitted(document)
        return answered({}, request_id=request_id_of(document))

    def _update(self, call: _Call) -> Answer | None:
        """Rename the job to the training job that it is right now; while it waits there is none."""
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

    def _arn(self, job: JobView, request: Mapping[str, Any], region: str) -> str:
        """Of the training job with the submitted name, which its first attempt is or will be."""
        account = (str(request.get("RoleArn")).split(":") + [""] * 5)[4]
        partition = self._session.get_partition_for_region(region)
        return f"arn:{partition}:sagemaker:{region}:{account}{_ARN_KIND}{job.name}"
