"""The hooks under boto3 itself: plain clients, the fake API, and AWS answered just before the network."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError, WaiterError
from botocore.validate import ParamValidator
from trainmaster_client.bypasses import QueueBypassWarning
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.hook import install, install_on_client, uninstall

from tests.integration.client import fake_api
from tests.integration.client.fake_api import (
    ACCESS_KEY,
    ARN,
    REGION,
    SECRET_KEY,
    FakeApi,
    Scripted,
    history,
    problem,
    running_fake_api,
    view,
)
from tests.integration.client.fake_aws import FakeAws

REQUEST = fake_api.REQUEST | {"Tags": [{"Key": "priority", "Value": "3"}]}
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


@pytest.fixture(scope="module")
def running_api() -> Iterator[FakeApi]:
    with running_fake_api() as api:
        yield api


@pytest.fixture
def api(running_api: FakeApi) -> FakeApi:
    running_api.forget()
    return running_api


@pytest.fixture(scope="module")
def clouds() -> tuple[boto3.Session, FakeAws]:
    """Made once: a session reads the model of a service in a tenth of a second."""
    session, aws = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION), FakeAws()
    aws.attach(session)
    return session, aws


@pytest.fixture
def aws(clouds: tuple[boto3.Session, FakeAws]) -> FakeAws:
    clouds[1].forget()
    return clouds[1]


@pytest.fixture
def boto_session(
    clouds: tuple[boto3.Session, FakeAws], aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> boto3.Session:
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    return clouds[0]


@pytest.fixture
def sagemaker(api: FakeApi, boto_session: boto3.Session) -> Any:
    install(boto_session, api_url=api.url)
    return boto_session.client("sagemaker")


def known(api: FakeApi, **fields: Any) -> None:
    api.script("GET", "/jobs/job1", Scripted(document={**view(**fields), "request": REQUEST}))


def attempt(number: int, name: str, *, is_over: bool = False) -> dict[str, Any]:
    arn = f"arn:aws:sagemaker:eu-west-1:123456789012:training-job/{name}"
    ended = "2026-11-21T02:00:00Z" if is_over else None
    return {"attempt": number, "training_job_name": name, "training_job_arn": arn, "ended_at": ended}


def described(
    name: str, status: str = "InProgress", secondary: str = "Training", **more: Any
) -> dict[str, Any]:
    """As SageMaker answers on the wire."""
    return {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:eu-west-1:123456789012:training-job/{name}",
        "TrainingJobStatus": status,
        "SecondaryStatus": secondary,
        "ModelArtifacts": {"S3ModelArtifacts": f"s3://bucket/out/{name}/output/model.tar.gz"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "ResourceConfig": REQUEST["ResourceConfig"],
        "CreationTime": NOON,
        **more,
    }


def test_creating_submits_the_request_as_it_is_and_answers_with_the_arn_to_come(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))
    answer = sagemaker.create_training_job(**REQUEST)
    assert json.loads(api.received[0].body) == REQUEST
    assert answer["TrainingJobArn"] == ARN
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert aws.calls == []


@pytest.mark.parametrize(
    ("status", "code", "title"),
    [
        pytest.param(400, "ValidationException", "Not a valid request", id="400"),
        pytest.param(403, "AccessDeniedException", "Not your team", id="403"),
        pytest.param(409, "ResourceInUse", "The name is taken", id="409"),
        pytest.param(422, "ValidationException", "Not allowed by the policy", id="422"),
        pytest.param(429, "ThrottlingException", "Too many submissions", id="429"),
        pytest.param(500, "InternalFailure", "Our mistake", id="500"),
    ],
)
def test_a_refusal_is_what_callers_of_boto3_catch_with_every_field_in_its_message(
    status: int, code: str, title: str, sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    errors = [
        {"field": "ResourceConfig.InstanceCount", "message": "is 9", "hint": "at most 2"},
        {"field": "Tags", "message": "no model_name", "hint": "add it"},
    ]
    api.script("POST", "/add-job", problem(status, title, "2 problems", *errors))
    with pytest.raises(ClientError) as caught:
        sagemaker.create_training_job(**REQUEST)
    assert caught.value.response["Error"]["Code"] == code
    for part in (title, "ResourceConfig.InstanceCount: is 9; at most 2", "Tags: no model_name; add it"):
        assert part in str(caught.value)
    assert aws.calls == []


def test_a_taken_name_is_the_clients_own_exception(sagemaker: Any, api: FakeApi) -> None:
    api.script("POST", "/add-job", problem(409, "The name is taken", "it is running"))
    with pytest.raises(sagemaker.exceptions.ResourceInUse):
        sagemaker.create_training_job(**REQUEST)


def test_a_waiting_job_is_described_from_its_request_with_its_place_and_reason(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    known(api, history=history(("pending", 0, "")))
    answer = sagemaker.describe_training_job(TrainingJobName="job1")
    assert (answer["TrainingJobStatus"], answer["SecondaryStatus"]) == ("InProgress", "Pending")
    assert answer["SecondaryStatusTransitions"] == [
        {
            "Status": "Pending",
            "StartTime": datetime(2026, 11, 21, 1, tzinfo=UTC),
            "StatusMessage": "Waiting, position 3 in pool p5 - capacity: needs 1 ml.p5.48xlarge, 0 are free",
        }
    ]
    assert answer["TrainingJobArn"] == ARN
    assert answer["AlgorithmSpecification"] == REQUEST["AlgorithmSpecification"]
    assert "Tags" not in answer
    assert_is_a_description(answer, sagemaker)
    assert aws.calls == []


def test_a_job_that_came_back_is_described_over_both_attempts(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    steps = [("pending", 0, ""), ("starting", 0, ""), ("running", 0, ""), ("preempting", 0, "for job4")]
    steps += [("preempted", 1, "for job4"), ("starting", 1, ""), ("running", 1, "")]
    first = described(
        "job1",
        "Stopped",
        "Stopped",
        TrainingStartTime=NOON,
        TrainingEndTime=NOON + 60,
        TrainingTimeInSeconds=60,
        BillableTimeInSeconds=50,
        SecondaryStatusTransitions=[{"Status": "Stopped", "StartTime": NOON, "EndTime": NOON + 60}],
    )
    second = described(
        "job1-r1-abcdef",
        TrainingStartTime=NOON + 90,
        SecondaryStatusTransitions=[{"Status": "Training", "StartTime": NOON + 90}],
    )
    aws.answers["DescribeTrainingJob"] = lambda body: {"job1": first, "job1-r1-abcdef": second}[
        body["TrainingJobName"]
    ]
    attempts = [attempt(0, "job1", is_over=True), attempt(1, "job1-r1-abcdef")]
    known(
        api, state="running", history=history(*steps), attempts=attempts, training_job_name="job1-r1-abcdef"
    )
    answer = sagemaker.describe_training_job(TrainingJobName="job1")
    assert answer["TrainingJobName"] == "job1"
    assert (answer["TrainingJobStatus"], answer["SecondaryStatus"]) == ("InProgress", "Training")
    assert [one["Status"] for one in answer["SecondaryStatusTransitions"]] == [
        "Pending",
        "Stopped",
        "Pending",
        "Training",
    ]
    assert answer["SecondaryStatusTransitions"][2]["StatusMessage"] == "for job4"
    assert answer["TrainingStartTime"] == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert "TrainingEndTime" not in answer
    assert (answer["TrainingTimeInSeconds"], answer["BillableTimeInSeconds"]) == (60, 50)
    assert (
        answer["ModelArtifacts"]["S3ModelArtifacts"] == "s3://bucket/out/job1-r1-abcdef/output/model.tar.gz"
    )
    assert_is_a_description(answer, sagemaker)

    sagemaker.describe_training_job(TrainingJobName="job1")
    assert [body["TrainingJobName"] for _, body in aws.calls] == ["job1", "job1-r1-abcdef", "job1-r1-abcdef"]


def test_the_name_of_a_later_attempt_goes_straight_to_sagemaker(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    api.script("GET", "/jobs/job1-r1-abcdef", Scripted(document=view("job1", state="running")))
    aws.answers["DescribeTrainingJob"] = lambda body: described(body["TrainingJobName"])
    answer = sagemaker.describe_training_job(TrainingJobName="job1-r1-abcdef")
    assert answer["TrainingJobName"] == "job1-r1-abcdef"
    assert len(aws.calls) == 1


def test_what_the_queue_does_not_know_goes_to_sagemaker_and_is_asked_for_seldom(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    aws.answers["DescribeTrainingJob"] = lambda body: described(body["TrainingJobName"])
    aws.answers["StopTrainingJob"] = lambda _: {}
    for _ in range(3):
        sagemaker.describe_training_job(TrainingJobName="old")
    sagemaker.stop_training_job(TrainingJobName="old")
    assert api.calls() == ["GET /jobs/old"]
    assert aws.operations() == ["DescribeTrainingJob"] * 3 + ["StopTrainingJob"]


def test_a_caller_who_is_nobody_to_the_queue_sees_what_sagemaker_shows(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    api.script("GET", "/jobs/job1", problem(403, "Forbidden", "you are of no team"))
    aws.answers["DescribeTrainingJob"] = lambda body: described(body["TrainingJobName"])
    assert sagemaker.describe_training_job(TrainingJobName="job1")["SecondaryStatus"] == "Training"


def test_a_name_that_cannot_be_one_is_left_to_sagemaker(sagemaker: Any, api: FakeApi, aws: FakeAws) -> None:
    aws.answers["DescribeTrainingJob"] = lambda _: {"__type": "ValidationException", "message": "pattern"}
    with pytest.raises(ClientError, match="ValidationException"):
        sagemaker.describe_training_job(TrainingJobName="team/job1")
    assert api.calls() == []


@pytest.mark.parametrize("name", ["job1", "job1-r1-abcdef"])
def test_stopping_takes_the_job_out_of_the_queue_by_the_name_of_any_attempt(
    name: str, sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    api.script("GET", f"/jobs/{name}", Scripted(document=view("job1", state="running")))
    api.script("DELETE", "/jobs/job1", Scripted(status=202, document=view("job1", state="stopping")))
    assert sagemaker.stop_training_job(TrainingJobName=name)["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert api.calls() == [f"GET /jobs/{name}", "DELETE /jobs/job1"]
    assert aws.calls == []


def test_stopping_what_has_ended_is_refused_as_sagemaker_does(sagemaker: Any, api: FakeApi) -> None:
    known(api, state="completed")
    api.script("DELETE", "/jobs/job1", problem(409, "Conflict", "the job is completed"))
    with pytest.raises(ClientError, match="the job is completed") as caught:
        sagemaker.stop_training_job(TrainingJobName="job1")
    assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_the_tags_of_a_job_are_those_that_were_submitted_by_the_arn_that_a_description_has(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    known(api, state="running", attempts=[attempt(0, "job1")])
    lower = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/spelt-otherwise"
    aws.answers["DescribeTrainingJob"] = lambda _: {**described("job1"), "TrainingJobArn": lower}
    arn = sagemaker.describe_training_job(TrainingJobName="job1")["TrainingJobArn"]
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "priority", "Value": "3"}]
    assert aws.operations() == ["DescribeTrainingJob"]


def test_the_tags_of_other_things_come_from_sagemaker(sagemaker: Any, api: FakeApi, aws: FakeAws) -> None:
    aws.answers["ListTags"] = lambda _: {"Tags": []}
    sagemaker.list_tags(ResourceArn="arn:aws:sagemaker:eu-west-1:123456789012:model/job1")
    sagemaker.list_tags(ResourceArn="arn:aws:sagemaker:eu-west-1:123456789012:training-job/old")
    assert api.calls() == ["GET /jobs/old"]
    assert aws.operations() == ["ListTags", "ListTags"]


def change_tags(sagemaker: Any, name: str) -> None:
    arn = f"arn:aws:sagemaker:eu-west-1:123456789012:training-job/{name}"
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}])
    sagemaker.delete_tags(ResourceArn=arn, TagKeys=["a"])


@pytest.mark.parametrize("state", ["pending", "held", "preempted"])
def test_tags_of_a_job_that_waits_cannot_be_changed_and_the_refusal_says_what_can(
    state: str, sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    known(api, state=state)
    with pytest.raises(ClientError, match="trainmaster priority job1 N") as caught:
        change_tags(sagemaker, "job1")
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert aws.operations() == []


def test_tags_of_a_job_that_runs_and_of_one_that_the_queue_does_not_know_are_sagemakers(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    known(api, state="running", attempts=[attempt(0, "job1")])
    aws.answers |= {"AddTags": lambda _: {}, "DeleteTags": lambda _: {}}
    for name in ("job1", "of-another"):
        change_tags(sagemaker, name)
    assert aws.operations() == ["AddTags", "DeleteTags"] * 2


def test_who_changes_an_answer_to_submit_it_again_does_not_change_the_next_one(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    known(api, state="completed", attempts=[attempt(0, "job1", is_over=True)])
    aws.answers["DescribeTrainingJob"] = lambda _: described("job1", "Completed", "Completed")
    answer = sagemaker.describe_training_job(TrainingJobName="job1")
    answer["ResourceConfig"]["InstanceCount"] = 8
    tags = sagemaker.list_tags(ResourceArn=answer["TrainingJobArn"])["Tags"]
    tags[0]["Value"] = "9"
    again = sagemaker.describe_training_job(TrainingJobName="job1")
    assert again["ResourceConfig"]["InstanceCount"] == 1
    tags = sagemaker.list_tags(ResourceArn=answer["TrainingJobArn"])["Tags"]
    assert tags == [{"Key": "priority", "Value": "3"}]


def test_attempts_are_described_where_the_caller_s_client_asks(
    boto_session: boto3.Session, api: FakeApi
) -> None:
    asked: list[str] = []
    endpoint = "https://vpce-0a.api.sagemaker.eu-west-1.vpce.amazonaws.com"

    def sent(request: AWSPreparedRequest, **_: object) -> None:
        asked.append(request.url)

    known(api, state="running", attempts=[attempt(0, "job1"), attempt(1, "job1-r1-abcdef")])
    session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    session.events.register_first("before-send", sent)
    aws = FakeAws(answers={"DescribeTrainingJob": lambda _: described("job1")})
    aws.attach(session)
    install(session, api_url=api.url)
    client = session.client("sagemaker", endpoint_url=endpoint)
    client.describe_training_job(TrainingJobName="job1")
    assert asked == [f"{endpoint}/"] * 2


def test_a_waiter_of_botocore_says_what_sagemaker_said_of_an_attempt(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    known(api, state="running", attempts=[attempt(0, "job1")])
    aws.answers["DescribeTrainingJob"] = lambda _: {"__type": "AccessDeniedException", "message": "no"}
    waiter = sagemaker.get_waiter("training_job_completed_or_stopped")
    with pytest.raises(WaiterError, match="AccessDeniedException") as caught:
        waiter.wait(TrainingJobName="job1", WaiterConfig={"Delay": 0, "MaxAttempts": 2})
    assert caught.value.last_response["Error"]["Code"] == "AccessDeniedException"


def test_a_waiter_of_botocore_waits_through_the_queue_to_the_end(
    sagemaker: Any, api: FakeApi, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster_client.jobs.queued_jobs.FRESH_SECONDS", 0)
    ended = view(state="completed", attempts=[attempt(0, "job1", is_over=True)])
    views = [Scripted(document={**one, "request": REQUEST}) for one in (view(), view(), ended)]
    api.script("GET", "/jobs/job1", *views)
    aws.answers["DescribeTrainingJob"] = lambda _: described("job1", "Completed", "Completed")
    waiter = sagemaker.get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName="job1", WaiterConfig={"Delay": 0, "MaxAttempts": 9})
    assert aws.operations() == ["DescribeTrainingJob"]


def test_threads_submit_each_its_own_job_and_see_it(sagemaker: Any, api: FakeApi, aws: FakeAws) -> None:
    names = [f"job{number}" for number in range(8)]
    for name in names:
        api.script("GET", f"/jobs/{name}", Scripted(document={**view(name), "request": REQUEST}))
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))

    def submit(name: str) -> tuple[str, str]:
        sagemaker.create_training_job(**{**REQUEST, "TrainingJobName": name})
        found = sagemaker.describe_training_job(TrainingJobName=name)
        return found["TrainingJobName"], found["SecondaryStatus"]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(submit, names)) == [(name, "Pending") for name in names]
    submitted = [json.loads(one.body)["TrainingJobName"] for one in api.received if one.method == "POST"]
    assert sorted(submitted) == names
    assert aws.calls == []


def test_a_training_job_that_only_has_the_name_of_ours_is_not_shown(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    stranger = {"attempt": 0, "training_job_name": "job1", "training_job_arn": None}
    reason = {"code": "name-taken", "message": "another training job has this name"}
    known(api, state="failed", reason=reason, history=history(("pending", 0, "")), attempts=[stranger])
    answer = sagemaker.describe_training_job(TrainingJobName="job1")
    assert answer["TrainingJobStatus"] == "Failed"
    assert answer["FailureReason"] == "name-taken: another training job has this name"
    assert aws.calls == []


def test_without_an_answer_nothing_starts_and_the_error_names_the_api(
    boto_session: boto3.Session, aws: FakeAws
) -> None:
    install(boto_session, api_url="http://127.0.0.1:1/prod")
    with pytest.raises(ClientError, match=r"http://127\.0\.0\.1:1/prod") as caught:
        boto_session.client("sagemaker").create_training_job(**REQUEST)
    assert caught.value.response["Error"]["Code"] == "ServiceUnavailable"
    assert aws.calls == []


def test_without_an_answer_it_starts_past_the_queue_where_that_was_asked_for_and_warns(
    boto_session: boto3.Session, aws: FakeAws
) -> None:
    install(boto_session, api_url="http://127.0.0.1:1/prod", on_unreachable="direct")
    aws.answers["CreateTrainingJob"] = lambda _: {"TrainingJobArn": ARN}
    aws.answers["DescribeTrainingJob"] = lambda body: described(body["TrainingJobName"])
    client = boto_session.client("sagemaker")
    with pytest.warns(QueueBypassWarning, match=r"job1 bypasses the queue: .*127\.0\.0\.1:1"):
        client.create_training_job(**REQUEST)
    client.describe_training_job(TrainingJobName="job1")
    assert aws.operations() == ["CreateTrainingJob", "DescribeTrainingJob"]


def test_a_refusal_never_starts_past_the_queue(
    boto_session: boto3.Session, api: FakeApi, aws: FakeAws
) -> None:
    install(boto_session, api_url=api.url, on_unreachable="direct")
    for status in (422, 500):
        api.script("POST", "/add-job", problem(status, "No", "not now"))
        with pytest.raises(ClientError):
            boto_session.client("sagemaker").create_training_job(**REQUEST)
    assert aws.calls == []


def test_another_way_out_than_the_two_is_refused(boto_session: boto3.Session, api: FakeApi) -> None:
    with pytest.raises(InvalidArgumentError, match=r"'ignore'.*'raise' or 'direct'"):
        install(boto_session, api_url=api.url, on_unreachable="ignore")  # type: ignore[arg-type]


def test_a_wait_outlives_an_api_that_is_away_for_a_while(
    sagemaker: Any, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster_client.jobs.queued_jobs.FRESH_SECONDS", 0)
    known(api, history=history(("pending", 0, "")))
    first = sagemaker.describe_training_job(TrainingJobName="job1")
    api.script("GET", "/jobs/job1", problem(503, "Busy", "come back"))
    assert sagemaker.describe_training_job(TrainingJobName="job1") == first


def test_installed_twice_a_job_is_submitted_once_to_the_api_that_was_named_last(
    boto_session: boto3.Session, api: FakeApi
) -> None:
    install(boto_session, api_url="http://127.0.0.1:1/prod")
    install(boto_session, api_url=api.url)
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))
    boto_session.client("sagemaker").create_training_job(**REQUEST)
    assert api.calls() == ["POST /add-job"]


def test_without_a_session_the_default_one_is_hooked_that_boto3_client_uses(
    boto_session: boto3.Session,
    api: FakeApi,
    aws: FakeAws,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto_session)
    request.addfinalizer(uninstall)
    install(api_url=api.url)
    known(api)
    assert (
        boto3.client("sagemaker").describe_training_job(TrainingJobName="job1")["SecondaryStatus"]
        == "Pending"
    )


def test_one_client_that_exists_can_be_hooked_alone(api: FakeApi, aws: FakeAws) -> None:
    boto_session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    aws.attach(boto_session)
    client, other = boto_session.client("sagemaker"), boto_session.client("sagemaker")
    install_on_client(client, boto_session, api_url=api.url)
    known(api)
    aws.answers["DescribeTrainingJob"] = lambda body: described(body["TrainingJobName"])
    assert client.describe_training_job(TrainingJobName="job1")["SecondaryStatus"] == "Pending"
    assert other.describe_training_job(TrainingJobName="job1")["SecondaryStatus"] == "Training"


def test_a_client_of_another_region_trains_there_as_it_did_and_is_told(
    boto_session: boto3.Session, api: FakeApi, aws: FakeAws
) -> None:
    install(boto_session, api_url=api.url)
    aws.answers["CreateTrainingJob"] = lambda _: {"TrainingJobArn": ARN}
    client = boto_session.client("sagemaker", region_name="us-west-2")
    with pytest.warns(QueueBypassWarning, match="goes to us-west-2, the queue serves eu-west-1"):
        client.create_training_job(**REQUEST)
    assert (aws.operations(), api.calls()) == (["CreateTrainingJob"], [])


def assert_is_a_description(answer: dict[str, Any], client: Any) -> None:
    """What botocore's own model says of DescribeTrainingJob's answer."""
    shape = client.meta.service_model.operation_model("DescribeTrainingJob").output_shape
    body = {name: value for name, value in answer.items() if name != "ResponseMetadata"}
    assert set(body) <= set(shape.members)
    report = ParamValidator().validate(body, shape)
    assert not report.has_errors(), report.generate_report()
