"""The session under the real SageMaker SDK: the SDK's own seams, and ``fit()`` against the fake API."""

import importlib.metadata
import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
import sagemaker.estimator
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session
from trainmaster_client import errors
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.session import QueueTrainingJobSession

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    FakeApi,
    Scripted,
    history,
    problem,
    running_fake_api,
    view,
)

ROLE = "arn:aws:iam::123456789012:role/training"
WHAT_TO_DO = (
    "The installed SageMaker SDK hands its CreateTrainingJob request to something else than "
    "Session._intercept_create_request(request, create, 'train'), or waits in another way. Read Session.train"
    " and _TrainingJob.wait of that version, move QueueTrainingJobSession to the new seam, then this test."
)
TELEMETRY_OFF = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Made once: the SDK takes half a second for a session."""

    api: FakeApi
    session: QueueTrainingJobSession
    aws_calls: list[str]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    calls: list[str] = []

    def refuse(event_name: str, **_: Any) -> None:
        calls.append(event_name.removeprefix("before-send."))
        raise AssertionError(f"{event_name} was about to be sent")

    boto_session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    boto_session.events.register("before-send", refuse)
    with running_fake_api() as api:
        session = QueueTrainingJobSession(boto_session, api_url=api.url, poll_seconds=0.001)
        yield World(api=api, session=session, aws_calls=calls)


@pytest.fixture
def api(world: World) -> FakeApi:
    world.api.forget()
    return world.api


@pytest.fixture
def session(world: World) -> QueueTrainingJobSession:
    return world.session


@pytest.fixture
def aws_calls(world: World) -> list[str]:
    """What was asked of AWS itself; each such call is refused, so nothing leaves this process."""
    world.aws_calls.clear()
    return world.aws_calls


def estimator(session: Session) -> sagemaker.estimator.Estimator:
    session.sagemaker_config = TELEMETRY_OFF
    return sagemaker.estimator.Estimator(
        image_uri="123456789012.dkr.ecr.eu-west-1.amazonaws.com/train:1",
        role=ROLE,
        instance_count=2,
        instance_type="ml.p5.48xlarge",
        output_path="s3://bucket/out",
        sagemaker_session=session,
        hyperparameters={"steps": 3},
        tags=[{"Key": "priority", "Value": "3"}],
    )


def script_job(api: FakeApi, *views: dict[str, Any]) -> None:
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))
    api.script("GET", "/jobs/job1", *(Scripted(document=one) for one in views))


def test_contract_the_sdk_still_has_the_seams_that_the_session_uses() -> None:
    assert importlib.metadata.version("sagemaker").startswith("2.257."), WHAT_TO_DO
    seam = "self._intercept_create_request(train_request, submit, self.train.__name__)"
    assert seam in inspect.getsource(Session.train), WHAT_TO_DO
    waiting = inspect.getsource(sagemaker.estimator._TrainingJob.wait)
    assert "sagemaker_session.logs_for_job(self.job_name, wait=True, log_type=logs)" in waiting, WHAT_TO_DO
    assert "sagemaker_session.wait_for_job(self.job_name)" in waiting, WHAT_TO_DO


@pytest.mark.parametrize("name", ["_intercept_create_request", "wait_for_job", "logs_for_job"])
def test_contract_the_overridden_methods_take_what_the_sdk_passes(name: str) -> None:
    theirs = inspect.signature(getattr(Session, name)).parameters
    ours = inspect.signature(getattr(QueueTrainingJobSession, name)).parameters
    assert list(ours) == list(theirs), WHAT_TO_DO
    assert [one.default for one in ours.values()] == [one.default for one in theirs.values()], WHAT_TO_DO


def test_fit_without_waiting_queues_the_sdks_own_request_and_returns(
    session: QueueTrainingJobSession, api: FakeApi, aws_calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    script_job(api)
    job = estimator(session)
    job.fit(wait=False, job_name="job1")
    assert api.calls() == ["POST /add-job"]
    sent = json.loads(api.received[0].body)
    assert sent["TrainingJobName"] == "job1"
    assert sent["RoleArn"] == ROLE
    assert sent["ResourceConfig"] == {
        "InstanceCount": 2,
        "InstanceType": "ml.p5.48xlarge",
        "VolumeSizeInGB": 30,
    }
    assert sent["HyperParameters"] == {"steps": "3"}
    assert sent["Tags"] == [{"Key": "priority", "Value": "3"}]
    assert job.latest_training_job.name == "job1"
    assert aws_calls == []
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "Queued job1.",
        "Waiting, position 3 in pool p5 - capacity: needs 1 ml.p5.48xlarge, 0 are free",
    ]


def test_an_estimator_with_the_launcher_asks_for_it_and_names_its_code_as_before(
    session: QueueTrainingJobSession, api: FakeApi
) -> None:
    script_job(api)
    session.sagemaker_config = TELEMETRY_OFF
    PyTorch(
        entry_point="train.py",
        source_dir="s3://bucket/code/sourcedir.tar.gz",
        container_entry_point=LAUNCHER,
        image_uri="123456789012.dkr.ecr.eu-west-1.amazonaws.com/train:1",
        role=ROLE,
        instance_count=1,
        instance_type="ml.p5.48xlarge",
        output_path="s3://bucket/out",
        sagemaker_session=session,
    ).fit(wait=False, job_name="job1")
    sent = json.loads(api.received[0].body)
    assert sent["AlgorithmSpecification"]["ContainerEntrypoint"] == LAUNCHER
    assert sent["HyperParameters"]["sagemaker_program"] == '"train.py"'
    assert sent["HyperParameters"]["sagemaker_submit_directory"] == '"s3://bucket/code/sourcedir.tar.gz"'


@pytest.mark.parametrize("logs", ["All", "None"])
def test_fit_tells_each_change_once_and_returns_when_the_job_is_completed(
    logs: Any,
    session: QueueTrainingJobSession,
    api: FakeApi,
    aws_calls: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = [
        ("pending", 0, ""),
        ("starting", 0, ""),
        ("running", 0, ""),
        ("preempting", 0, "job4 has priority 3"),
        ("preempted", 1, ""),
        ("starting", 1, ""),
        ("running", 1, ""),
        ("completed", 1, ""),
    ]
    attempts = [
        {"attempt": 0, "training_job_name": "job1"},
        {"attempt": 1, "training_job_name": "job1-r1-abcdef"},
    ]
    ahead = {"code": "ahead", "message": "1 job is ahead"}
    script_job(
        api,
        view(history=history(*steps[:1])),
        view(history=history(*steps[:1])),
        view(history=history(*steps[:1]), position=2, waiting=ahead),
        view(state="running", history=history(*steps[:3]), attempts=attempts),
        view(state="preempted", history=history(*steps[:5]), attempts=attempts, position=1, waiting=ahead),
        view(state="completed", history=history(*steps), attempts=attempts),
    )
    estimator(session).fit(logs=logs, job_name="job1")
    assert api.calls() == ["POST /add-job"] + ["GET /jobs/job1"] * 6
    assert aws_calls == []
    assert capsys.readouterr().out.splitlines()[-12:] == [
        "Queued job1.",
        "Waiting, position 3 in pool p5 - capacity: needs 1 ml.p5.48xlarge, 0 are free",
        "2026-11-21 01:00:00 Pending",
        "Waiting, position 2 in pool p5 - ahead: 1 job is ahead",
        "2026-11-21 01:01:00 Starting - attempt 0, training job job1",
        "2026-11-21 01:02:00 Running - attempt 0, training job job1",
        "2026-11-21 01:03:00 Preempting - job4 has priority 3",
        "2026-11-21 01:04:00 Preempted",
        "Waiting to resume, position 1 in pool p5 - ahead: 1 job is ahead",
        "2026-11-21 01:05:00 Starting - attempt 1, training job job1-r1-abcdef",
        "2026-11-21 01:06:00 Resumed - attempt 1, training job job1-r1-abcdef",
        "2026-11-21 01:07:00 Completed",
    ]


@pytest.mark.parametrize(("state", "status"), [("failed", "Failed"), ("stopped", "Stopped")])
def test_waiting_raises_the_sdks_error_with_the_reason_when_the_job_did_not_complete(
    state: str, status: str, session: QueueTrainingJobSession, api: FakeApi
) -> None:
    script_job(api, view(state=state, reason={"code": "failed-to-start", "message": "no such image"}))
    with pytest.raises(UnexpectedStatusException, match="failed-to-start: no such image") as caught:
        session.wait_for_job("job1")
    assert caught.value.actual_status == status


def test_a_wait_with_a_time_limit_ends_as_the_sdks_does(
    session: QueueTrainingJobSession, api: FakeApi
) -> None:
    script_job(api, view())
    with pytest.raises(UnexpectedStatusException) as caught:
        session.logs_for_job("job1", wait=True, timeout=0)
    assert caught.value.actual_status == "InProgress"


def test_what_the_policy_refuses_is_raised_out_of_fit_and_nothing_is_started(
    session: QueueTrainingJobSession, api: FakeApi, aws_calls: list[str]
) -> None:
    count = {
        "field": "ResourceConfig.InstanceCount",
        "message": "asks for 2, the pool has 1",
        "hint": "take 1",
    }
    api.script("POST", "/add-job", problem(422, "Not allowed by the policy", "1 problem", count))
    with pytest.raises(errors.PolicyViolationError, match=r"ResourceConfig\.InstanceCount: asks for 2"):
        estimator(session).fit(job_name="job1")
    assert aws_calls == []


def test_an_unreachable_api_is_an_error_that_names_it_never_a_direct_start(
    session: QueueTrainingJobSession, aws_calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster_client.api.FIRST_PAUSE_SECONDS", 0)
    monkeypatch.setenv("TRAINMASTER_API_URL", "http://127.0.0.1:1/prod")
    unreachable = QueueTrainingJobSession(session.boto_session)
    with pytest.raises(errors.ApiUnreachableError, match=r"http://127\.0\.0\.1:1/prod"):
        estimator(unreachable).fit(job_name="job1")
    assert aws_calls == []


def test_warnings_of_the_api_are_shown(
    session: QueueTrainingJobSession, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = {"field": "CheckpointConfig", "message": "is missing", "hint": "a preempted job starts anew"}
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": [warning]}))
    session._intercept_create_request({"TrainingJobName": "job1"}, list, "train")
    assert "Warning: CheckpointConfig: is missing; a preempted job starts anew" in capsys.readouterr().out


def test_interrupting_the_wait_leaves_the_job_and_says_how_to_cancel_it(
    session: QueueTrainingJobSession,
    api: FakeApi,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(name: str, **_: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session._trainmaster, "job", interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.wait_for_job("job1")
    assert api.calls() == []
    assert capsys.readouterr().out.splitlines()[-1] == (
        "No longer waiting. job1 is not affected; to take it out: trainmaster cancel job1"
    )


@pytest.mark.parametrize(
    "wait",
    [
        pytest.param(lambda session: session.wait_for_job("old"), id="wait_for_job"),
        pytest.param(lambda session: session.logs_for_job("old", wait=True), id="logs, waiting"),
        pytest.param(lambda session: session.logs_for_job("old"), id="logs only"),
    ],
)
def test_a_job_that_is_not_in_the_queue_is_waited_for_as_the_sdk_does(
    wait: Any, session: QueueTrainingJobSession, aws_calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagemaker.session.time.sleep", lambda _: None)
    with pytest.raises(AssertionError, match=r"sagemaker\.DescribeTrainingJob"):
        wait(session)
    assert aws_calls == ["sagemaker.DescribeTrainingJob"]


def test_what_is_no_training_goes_straight_to_sagemaker(
    session: QueueTrainingJobSession, api: FakeApi
) -> None:
    created: list[dict[str, Any]] = []
    request = {"ProcessingJobName": "p1"}
    for func_name in ("process", "create_tuning_job", "transform", "create_model", None):
        assert session._intercept_create_request(request, created.append, func_name) is None
    assert created == [request] * 5
    assert api.received == []


def test_a_session_without_any_api_says_where_it_looked(
    boto_session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:1")
    with pytest.raises(errors.ApiNotConfiguredError) as caught:
        QueueTrainingJobSession(boto_session)
    for place in ("api_url=", "TRAINMASTER_API_URL", "/trainmaster/api-url"):
        assert place in str(caught.value)
