"""The session under the real SageMaker SDK: ``fit()`` against the fake API."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.pytorch import PyTorch
from trainmaster_client import errors
from trainmaster_client.job_options import job_tags
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.session import QueueTrainingJobSession

from tests.integration.client.fake_api import FakeApi, Scripted, history, problem, view
from tests.integration.client.fake_aws import FakeAws
from tests.integration.client.sdk_world import ROLE, World, estimator, running_world, script_job, script_logs


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_world() as running:
        yield running


@pytest.fixture
def api(world: World) -> FakeApi:
    world.forget()
    return world.api


@pytest.fixture
def session(world: World) -> QueueTrainingJobSession:
    return world.session


@pytest.fixture
def aws(world: World, api: FakeApi) -> FakeAws:
    """What is asked of AWS itself; what is not scripted is refused, so nothing leaves this process."""
    return world.aws


def test_fit_without_waiting_queues_the_sdks_own_request_and_returns(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws, capsys: pytest.CaptureFixture[str]
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
    assert aws.calls == []
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "Queued job1.",
        "Waiting, position 3 in pool p5 - capacity: needs 1 ml.p5.48xlarge, 0 are free",
    ]


def test_an_estimator_with_the_launcher_asks_for_it_and_names_its_code_as_before(
    session: QueueTrainingJobSession, api: FakeApi
) -> None:
    script_job(api)
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


PLAN = "arn:aws:sagemaker:eu-west-1:123456789012:training-plan/spring"


def test_an_estimators_training_plan_reaches_the_queue_and_so_does_the_tag_for_any_plan(
    session: QueueTrainingJobSession, api: FakeApi
) -> None:
    """A layer that makes the request anew may drop the plan; then the job would run on demand unnoticed."""
    script_job(api)
    ways: tuple[dict[str, Any], ...] = ({"training_plan": PLAN}, {"tags": job_tags(plan="only")})
    for number, given in enumerate(ways):
        PyTorch(
            entry_point="train.py",
            source_dir="s3://bucket/code/sourcedir.tar.gz",
            image_uri="123456789012.dkr.ecr.eu-west-1.amazonaws.com/train:1",
            role=ROLE,
            instance_count=1,
            instance_type="ml.p5.48xlarge",
            output_path="s3://bucket/out",
            sagemaker_session=session,
            **given,
        ).fit(wait=False, job_name=f"job{number}")
    named, tagged = (json.loads(call.body) for call in api.received if call.method == "POST")
    assert named["ResourceConfig"]["TrainingPlanArn"] == PLAN
    assert "TrainingPlanArn" not in tagged["ResourceConfig"]
    assert {"Key": "trainmaster:plan", "Value": "only"} in tagged["Tags"]


STEPS = [
    ("pending", 0, ""),
    ("starting", 0, ""),
    ("running", 0, ""),
    ("preempting", 0, "job4 has priority 3"),
    ("preempted", 1, ""),
    ("starting", 1, ""),
    ("running", 1, ""),
    ("completed", 1, ""),
]
ATTEMPTS = [
    {"attempt": 0, "training_job_name": "job1"},
    {"attempt": 1, "training_job_name": "job1-r1-abcdef"},
]
AHEAD = {"code": "ahead", "message": "1 job is ahead"}


def script_a_preemption(api: FakeApi) -> None:
    script_job(
        api,
        view(history=history(*STEPS[:1])),
        view(history=history(*STEPS[:1])),
        view(history=history(*STEPS[:1]), position=2, waiting=AHEAD),
        view(state="running", history=history(*STEPS[:3]), attempts=ATTEMPTS[:1]),
        view(
            state="preempted", history=history(*STEPS[:5]), attempts=ATTEMPTS[:1], position=1, waiting=AHEAD
        ),
        view(state="completed", history=history(*STEPS), attempts=ATTEMPTS),
    )


def test_fit_tells_each_change_once_and_returns_when_the_job_is_completed(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws, capsys: pytest.CaptureFixture[str]
) -> None:
    script_a_preemption(api)
    estimator(session).fit(logs="None", job_name="job1")
    assert api.calls() == ["POST /add-job"] + ["GET /jobs/job1"] * 6
    assert aws.calls == []
    assert capsys.readouterr().out.splitlines()[-12:] == [
        "Queued job1.",
        "Waiting, position 3 in pool p5 - capacity: needs 1 ml.p5.48xlarge, 0 are free",
        "2026-11-21 01:00:00 Pending",
        "Waiting, position 2 in pool p5 - ahead: 1 job is ahead",
        "2026-11-21 01:01:00 Starting - attempt 0, training job job1",
        "2026-11-21 01:02:00 Running - attempt 0, training job job1",
        "2026-11-21 01:03:00 Preempting - job4 has priority 3",
        "2026-11-21 01:04:00 Preempted",
        "Waiting to resume, position 1 in pool p5 - 1 job is ahead",
        "2026-11-21 01:05:00 Starting - attempt 1, training job job1-r1-abcdef",
        "2026-11-21 01:06:00 Resumed - attempt 1, training job job1-r1-abcdef",
        "2026-11-21 01:07:00 Completed",
    ]


@pytest.mark.parametrize("logs", ["All", "Training"])
def test_fit_shows_what_each_attempt_prints_between_the_changes(
    logs: Any,
    session: QueueTrainingJobSession,
    api: FakeApi,
    aws: FakeAws,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script_a_preemption(api)
    script_logs(aws, {"job1": ["step 1", "step 2\x1b[0m"], "job1-r1-abcdef": ["resumed at 2", "step 3"]})
    estimator(session).fit(logs=logs, job_name="job1")
    assert capsys.readouterr().out.splitlines()[-12:] == [
        "2026-11-21 01:01:00 Starting - attempt 0, training job job1",
        "2026-11-21 01:02:00 Running - attempt 0, training job job1",
        "step 1",
        "step 2",
        "2026-11-21 01:03:00 Preempting - job4 has priority 3",
        "2026-11-21 01:04:00 Preempted",
        "Waiting to resume, position 1 in pool p5 - 1 job is ahead",
        "resumed at 2",
        "step 3",
        "2026-11-21 01:05:00 Starting - attempt 1, training job job1-r1-abcdef",
        "2026-11-21 01:06:00 Resumed - attempt 1, training job job1-r1-abcdef",
        "2026-11-21 01:07:00 Completed",
    ]


def test_lines_of_several_hosts_name_their_host(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = view(state="completed", attempts=ATTEMPTS[:1], instances={"ml.p5.48xlarge": 2})
    script_job(api, whole)
    script_logs(aws, {"job1": ["step 1"]})
    session.logs_for_job("job1", wait=True)
    assert capsys.readouterr().out.splitlines() == ["algo-1 | step 1"]


def test_lines_that_reach_cloudwatch_after_the_end_are_shown_too(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws, capsys: pytest.CaptureFixture[str]
) -> None:
    script_job(api, view(state="completed", attempts=ATTEMPTS[:1]))
    lines: dict[str, list[str]] = {}
    script_logs(aws, lines)
    listed = aws.answers["DescribeLogStreams"]

    def late(body: dict[str, Any]) -> dict[str, Any]:
        if aws.operations().count("DescribeLogStreams") == 3:
            lines["job1"] = ["the last line"]
        return listed(body)

    aws.answers["DescribeLogStreams"] = late
    session.logs_for_job("job1", wait=True)
    assert capsys.readouterr().out.splitlines() == ["the last line"]


def test_a_wait_goes_on_without_the_right_to_read_logs_and_says_so_once(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws, capsys: pytest.CaptureFixture[str]
) -> None:
    running = view(state="running", attempts=ATTEMPTS[:1])
    script_job(api, running, running, view(state="completed", attempts=ATTEMPTS[:1]))
    aws.answers["DescribeLogStreams"] = lambda _: {"__type": "AccessDeniedException", "message": "no right"}
    session.logs_for_job("job1", wait=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("No log lines: ")
    assert "AccessDeniedException" in line
    assert aws.operations() == ["DescribeLogStreams"]


def test_only_rules_asks_for_no_lines(session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws) -> None:
    script_job(api, view(state="completed", attempts=ATTEMPTS[:1]))
    session.logs_for_job("job1", wait=True, log_type="Rules")
    assert aws.calls == []


EXPIRED = Scripted(
    status=403,
    document={"message": "The security token included in the request is expired"},
    headers={"content-type": "application/json", "x-amzn-ErrorType": "ExpiredTokenException"},
)


def test_O15_a_wait_says_once_that_the_credentials_expired_and_blames_no_right(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws, capsys: pytest.CaptureFixture[str]
) -> None:
    running = view(state="running", attempts=ATTEMPTS[:1])
    script_job(api, *[running] * 4, view(state="completed", attempts=ATTEMPTS[:1]))
    aws.answers["DescribeLogStreams"] = lambda _: {"__type": "ExpiredTokenException", "message": "expired"}
    session.logs_for_job("job1", wait=True)
    out = capsys.readouterr().out
    assert out.count("To log in again: aws sso login") == 1
    assert "logs:GetLogEvents" not in out


def test_O15_a_wait_with_keys_that_nothing_renews_ends_and_says_that_the_job_does_not(
    session: QueueTrainingJobSession, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    script_job(api, view(state="running"))
    api.script("GET", "/jobs/job1", Scripted(document=view(state="running")), EXPIRED)
    with pytest.raises(errors.GatewayRefusedError, match="To log in again: aws sso login"):
        session.wait_for_job("job1")
    assert "job1 is not affected" in capsys.readouterr().out


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
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws
) -> None:
    count = {
        "field": "ResourceConfig.InstanceCount",
        "message": "asks for 2, the pool has 1",
        "hint": "take 1",
    }
    api.script("POST", "/add-job", problem(422, "Not allowed by the policy", "1 problem", count))
    with pytest.raises(errors.PolicyViolationError, match=r"ResourceConfig\.InstanceCount: asks for 2"):
        estimator(session).fit(job_name="job1")
    assert aws.calls == []


def test_an_unreachable_api_is_an_error_that_names_it_never_a_direct_start(
    session: QueueTrainingJobSession, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    monkeypatch.setenv("TRAINMASTER_API_URL", "http://127.0.0.1:1/prod")
    unreachable = QueueTrainingJobSession(session.boto_session)
    with pytest.raises(errors.ApiUnreachableError, match=r"http://127\.0\.0\.1:1/prod"):
        estimator(unreachable).fit(job_name="job1")
    assert aws.calls == []


def test_warnings_of_the_api_are_shown(
    session: QueueTrainingJobSession, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = {"field": "CheckpointConfig", "message": "is missing", "hint": "a preempted job starts again"}
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": [warning]}))
    session._intercept_create_request({"TrainingJobName": "job1"}, list, "train")
    assert "Warning: CheckpointConfig: is missing; a preempted job starts again" in capsys.readouterr().out


def test_interrupting_the_wait_leaves_the_job_and_says_how_to_cancel_it(
    session: QueueTrainingJobSession,
    api: FakeApi,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(name: str, **_: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session._hooks.api, "job", interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.wait_for_job("job1")
    assert api.calls() == []
    assert capsys.readouterr().out.splitlines()[-1] == (
        "No longer waiting. job1 is not affected; to cancel it: trainmaster cancel job1"
    )


@pytest.mark.parametrize("logs", ["All", "None"])
def test_code_behind_an_interrupted_fit_does_not_go_on(
    session: QueueTrainingJobSession, api: FakeApi, monkeypatch: pytest.MonkeyPatch, logs: str
) -> None:
    def interrupt(name: str, **_: bool) -> None:
        raise KeyboardInterrupt

    script_job(api)
    monkeypatch.setattr(session._hooks.api, "job", interrupt)
    with pytest.raises(KeyboardInterrupt, match="Interrupted while waiting for job1, which is not affected"):
        estimator(session).fit(job_name="job1", logs=logs)


@pytest.mark.parametrize(
    "wait",
    [
        pytest.param(lambda session: session.wait_for_job("old"), id="wait_for_job"),
        pytest.param(lambda session: session.logs_for_job("old", wait=True), id="logs, waiting"),
        pytest.param(lambda session: session.logs_for_job("old"), id="logs only"),
    ],
)
def test_a_job_that_is_not_in_the_queue_is_waited_for_as_the_sdk_does(
    wait: Any, session: QueueTrainingJobSession, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagemaker.session.time.sleep", lambda _: None)
    with pytest.raises(AssertionError, match=r"sagemaker\.DescribeTrainingJob"):
        wait(session)
    assert aws.operations() == ["DescribeTrainingJob"]


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
