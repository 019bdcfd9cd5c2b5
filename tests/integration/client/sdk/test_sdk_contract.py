"""What we lean on in the SageMaker SDK v2 and in botocore, held to the installed versions.

A failure here means that an upgrade moved something. Its message says what, and what to do.
"""

import importlib.metadata
import inspect
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
import sagemaker.analytics
import sagemaker.estimator
import sagemaker.remote_function.job
from botocore.awsrequest import AWSResponse
from botocore.client import BaseClient
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError
from sagemaker.session import Session, _logs_for_job
from trainmaster_client.hooks.botocore_events import plain_client, register
from trainmaster_client.hooks.hooked_events import HOOKED_EVENTS
from trainmaster_client.hooks.job_description import NEVER_DESCRIBED
from trainmaster_client.session import QueueTrainingJobSession

from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY

NEW_SEAM = (
    "The installed SageMaker SDK hands its CreateTrainingJob request to something else than "
    "Session._intercept_create_request(request, create, 'train'), or waits in another way. Read Session.train"
    " and _TrainingJob.wait of that version, move QueueTrainingJobSession to the new seam, then this test."
)
NEW_READER = (
    "The installed SageMaker SDK looks at training jobs by another way than Session.sagemaker_client, whose "
    "DescribeTrainingJob is hooked, or reads logs and metrics with other clients than boto_session.client() "
    "makes. Find the call, hook what it uses in QueueTrainingJobSession.__init__, then move this test."
)
NEW_BOTOCORE = (
    "botocore calls the handlers of trainmaster_client.hook in another way. Read "
    "BaseClient._make_api_call of that version, adapt the hooks, then this test."
)


def test_the_version_is_the_one_that_was_read() -> None:
    assert importlib.metadata.version("sagemaker").startswith("2.257."), NEW_SEAM


def test_train_hands_its_request_to_the_interceptor() -> None:
    seam = "self._intercept_create_request(train_request, submit, self.train.__name__)"
    assert seam in inspect.getsource(Session.train), NEW_SEAM


def test_waiting_goes_through_the_two_methods_that_the_session_overrides() -> None:
    waiting = inspect.getsource(sagemaker.estimator._TrainingJob.wait)
    assert "sagemaker_session.logs_for_job(self.job_name, wait=True, log_type=logs)" in waiting, NEW_SEAM
    assert "sagemaker_session.wait_for_job(self.job_name)" in waiting, NEW_SEAM


@pytest.mark.parametrize("name", ["_intercept_create_request", "wait_for_job", "logs_for_job"])
def test_the_overridden_methods_take_what_the_sdk_passes(name: str) -> None:
    theirs = inspect.signature(getattr(Session, name)).parameters
    ours = inspect.signature(getattr(QueueTrainingJobSession, name)).parameters
    assert list(ours) == list(theirs), NEW_SEAM
    assert [one.default for one in ours.values()] == [one.default for one in theirs.values()], NEW_SEAM


@pytest.mark.parametrize(
    ("method", "call"),
    [
        (Session.describe_training_job, "self.sagemaker_client.describe_training_job("),
        (Session.stop_training_job, "self.sagemaker_client.stop_training_job("),
        (sagemaker.estimator.EstimatorBase._attach, "sagemaker_client.describe_training_job("),
        (sagemaker.estimator.EstimatorBase._attach, "sagemaker_client.list_tags("),
        (_logs_for_job, "sagemaker_session.sagemaker_client"),
        (_logs_for_job, "sagemaker_session.boto_session"),
        (
            sagemaker.remote_function.job._Job.start,
            "sagemaker_session.sagemaker_client.create_training_job(",
        ),
        (sagemaker.remote_function.job._Job.wait, "_logs_for_job("),
        (sagemaker.analytics.TrainingJobAnalytics.__init__, 'boto_session.client("cloudwatch")'),
        (sagemaker.analytics.TrainingJobAnalytics._fetch_metric, ".get_metric_statistics("),
    ],
)
def test_jobs_are_looked_at_with_the_clients_that_are_hooked(method: Any, call: str) -> None:
    assert call in inspect.getsource(method), NEW_READER


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def boto_session() -> boto3.Session:
    return boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)


def answer(status: int, parsed: dict[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
    return AWSResponse("", status, HTTPHeaders(), None), {**parsed, "ResponseMetadata": {}}


def test_an_answer_of_a_before_call_handler_is_taken_instead_of_the_call(boto_session: boto3.Session) -> None:
    seen: list[dict[str, Any]] = []

    def handle(**given: Any) -> Any:
        seen.append(given)
        return answer(200, {"TrainingJobStatus": "InProgress"})

    register(boto_session.events, "before-call.sagemaker.DescribeTrainingJob", handle)
    client = boto_session.client("sagemaker")
    found = client.describe_training_job(TrainingJobName="job1")
    assert found["TrainingJobStatus"] == "InProgress", NEW_BOTOCORE
    (given,) = seen
    assert given["params"]["body"] == b'{"TrainingJobName": "job1"}', NEW_BOTOCORE
    assert given["params"]["url"] == "https://api.sagemaker.eu-west-1.amazonaws.com/", NEW_BOTOCORE
    assert given["context"]["client_region"] == REGION, NEW_BOTOCORE


def test_a_status_from_300_on_is_raised_as_the_clients_own_exception(boto_session: boto3.Session) -> None:
    error = {"Error": {"Code": "ResourceInUse", "Message": "taken"}}
    register(boto_session.events, "before-call.sagemaker.StopTrainingJob", lambda **_: answer(409, error))
    client = boto_session.client("sagemaker")
    with pytest.raises(ClientError, match=r"ResourceInUse.*StopTrainingJob.*taken") as caught:
        client.stop_training_job(TrainingJobName="job1")
    assert isinstance(caught.value, client.exceptions.ResourceInUse), NEW_BOTOCORE


def test_a_handler_at_the_parameters_and_one_at_the_answer_share_the_context(
    boto_session: boto3.Session,
) -> None:
    kept: list[Any] = []
    register(
        boto_session.events,
        "provide-client-params.cloudwatch.GetMetricStatistics",
        lambda params, context, **_: context.update(asked=params["MetricName"]),
    )
    register(
        boto_session.events,
        "after-call.cloudwatch.GetMetricStatistics",
        lambda parsed, context, **_: kept.append((context["asked"], parsed["Label"])),
    )
    boto_session.events.register(
        "before-call.cloudwatch.GetMetricStatistics",
        lambda **_: answer(200, {"Label": "l"}),  # type: ignore[arg-type]  # stubs: no answer
    )
    boto_session.client("cloudwatch").get_metric_statistics(
        Namespace="n", MetricName="loss", StartTime=NOON, EndTime=NOON, Period=60, Statistics=["Average"]
    )
    assert kept == [("loss", "l")], NEW_BOTOCORE


def test_a_plain_client_has_none_of_the_handlers_and_other_peoples_stay(boto_session: boto3.Session) -> None:
    ours: list[str] = []
    theirs: list[str] = []
    for event in HOOKED_EVENTS:
        register(boto_session.events, event, lambda event_name, **_: ours.append(event_name))

    def answering(**_: Any) -> Any:
        theirs.append("theirs")
        return answer(200, {})

    boto_session.events.register("before-call.sagemaker", answering)
    plain_client(boto_session, "sagemaker").describe_training_job(TrainingJobName="job1")
    assert (ours, theirs) == ([], ["theirs"]), NEW_BOTOCORE
    boto_session.client("sagemaker").describe_training_job(TrainingJobName="job1")
    assert ours == ["before-call.sagemaker.DescribeTrainingJob"], NEW_BOTOCORE


def test_registered_twice_a_handler_is_called_once_the_last_one(boto_session: boto3.Session) -> None:
    called: list[int] = []

    def handler(number: int) -> Any:
        def handle(**_: Any) -> Any:
            called.append(number)
            return answer(200, {})

        return handle

    for number in (1, 2):
        register(boto_session.events, "before-call.sagemaker.StopTrainingJob", handler(number))
    boto_session.client("sagemaker").stop_training_job(TrainingJobName="job1")
    assert called == [2], NEW_BOTOCORE


def test_a_description_shows_every_member_of_a_request_but_the_named_ones(
    boto_session: boto3.Session,
) -> None:
    model: Any = boto_session.client("sagemaker").meta.service_model
    request = set(model.operation_model("CreateTrainingJob").input_shape.members)
    described = set(model.operation_model("DescribeTrainingJob").output_shape.members)
    assert request - described == NEVER_DESCRIBED, (
        "SageMaker shows other members of a request than description.py says: correct NEVER_DESCRIBED."
    )


def test_what_finds_sessions_and_clients_finds_it_where_it_was() -> None:
    session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    client: Any = session.client("sts")
    inner: Any = session._session
    base: Any = BaseClient
    assert client._request_signer._credentials is inner._credentials is session.get_credentials(), (
        NEW_BOTOCORE
    )
    taken = list(inspect.signature(base._make_request).parameters)
    assert taken == ["self", "operation_model", "request_dict", "request_context"], NEW_BOTOCORE
    assert "self._make_request(" in inspect.getsource(base._make_api_call), NEW_BOTOCORE
    assert "invoke_initializers(self)" in inspect.getsource(type(inner).__init__), NEW_BOTOCORE


def test_every_event_that_is_hooked_is_of_an_operation_that_exists(boto_session: boto3.Session) -> None:
    services = {"cloudwatch-logs": "logs"}
    for event in HOOKED_EVENTS:
        _, service, operation = event.split(".")
        client: Any = boto_session.client(services.get(service, service))  # type: ignore[call-overload]
        model = client.meta.service_model
        assert operation in model.operation_names, f"{event}: AWS has renamed it; rename it in HOOKED_EVENTS."
