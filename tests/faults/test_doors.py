"""L1, L2, L3, L6, L12: every session of a process that asked for the queue, made before or later."""

import gc
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import botocore
import botocore.session
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from trainmaster_client.bypasses import RoundTheQueueWarning
from trainmaster_client.errors import ApiNotConfiguredError, InvalidApiUrlError, UnsupportedBotocoreError
from trainmaster_client.hook import install, uninstall

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    ARN,
    REGION,
    REQUEST,
    SECRET_KEY,
    FakeApi,
    Scripted,
    running_fake_api,
    view,
)
from tests.integration.client.fake_aws import FakeAws


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keys and a region for whoever makes a session, no default session, and no address but ours."""
    for name, value in (
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_CONFIG_FILE", os.devnull),
        ("AWS_SHARED_CREDENTIALS_FILE", os.devnull),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("SAGEMAKER_SUPPRESS_V2_WARNING", "1"),  # read when the SDK is imported
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    yield
    uninstall()


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running_fake_api() as running:
        accept(running)
        yield running


def accept(api: FakeApi) -> None:
    answer = {"job": view(), "warnings": []}
    api.script("POST", "/add-job", Scripted(status=201, document=answer, headers={"x-amzn-RequestId": "r-1"}))


def submitted(api: FakeApi) -> list[str]:
    """Names, in their order."""
    added = [one for one in api.received if (one.method, one.path) == ("POST", "/add-job")]
    return [json.loads(one.body)["TrainingJobName"] for one in added]


def of_botocore() -> Any:
    return botocore.session.get_session().create_client("sagemaker")


def of_boto3() -> Any:
    return boto3.Session().client("sagemaker")


def of_the_default_session() -> Any:
    return boto3.client("sagemaker")


def of_a_later_default_session() -> Any:
    boto3.setup_default_session(region_name=REGION)
    return boto3.client("sagemaker")


def of_a_session_with_keys_of_its_own() -> Any:
    return boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION).client("sagemaker")


def of_a_client_with_keys_of_its_own() -> Any:
    return boto3.client("sagemaker", aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY)


def of_the_sdk_v2() -> Any:
    from sagemaker.session import Session  # noqa: PLC0415  takes seconds

    return Session(boto3.Session()).sagemaker_client


@pytest.mark.parametrize(
    "client",
    [
        of_boto3,
        of_a_session_with_keys_of_its_own,
        pytest.param(of_the_sdk_v2, marks=pytest.mark.thorough),
    ],
)
def test_L1_a_session_made_after_install_queues(client: Callable[[], Any], api: FakeApi) -> None:
    install(api_url=api.url)
    answer = client().create_training_job(**REQUEST)
    assert (answer["TrainingJobArn"], submitted(api)) == (ARN, ["job1"])


@pytest.mark.parametrize("client", [of_the_default_session, of_a_later_default_session, of_botocore])
def test_L2_a_later_default_session_and_botocores_own_queue(client: Callable[[], Any], api: FakeApi) -> None:
    of_the_default_session()
    install(api_url=api.url)
    assert client().create_training_job(**REQUEST)["TrainingJobArn"] == ARN
    assert submitted(api) == ["job1"]


@pytest.mark.parametrize(
    "client",
    [of_boto3, of_the_default_session, of_botocore, of_a_client_with_keys_of_its_own],
)
def test_L3_a_client_made_before_install_queues(client: Callable[[], Any], api: FakeApi) -> None:
    made = client()
    install(api_url=api.url)
    assert made.create_training_job(**REQUEST)["TrainingJobArn"] == ARN
    assert submitted(api) == ["job1"]


def test_L3_a_session_made_before_install_queues_with_the_clients_it_makes_later(api: FakeApi) -> None:
    session = boto3.Session()
    install(api_url=api.url)
    session.client("sagemaker").create_training_job(**REQUEST)
    assert submitted(api) == ["job1"]


def test_L3_installed_twice_and_by_name_too_a_job_is_submitted_once(api: FakeApi) -> None:
    session = boto3.Session()
    before = session.client("sagemaker")
    install(session, api_url=api.url)
    for _ in range(2):
        install(api_url=api.url)
    for client in (before, session.client("sagemaker"), of_botocore()):
        client.create_training_job(**REQUEST)
    assert submitted(api) == ["job1"] * 3


def test_L3_the_api_that_was_installed_last_counts_for_clients_that_exist(api: FakeApi) -> None:
    install(api_url="http://127.0.0.1:1/prod")
    client = of_boto3()
    install(api_url=api.url)
    client.create_training_job(**REQUEST)
    assert submitted(api) == ["job1"]


def test_L3_a_client_that_could_not_be_found_warns_before_its_job_leaves(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, aws = boto3.Session(), FakeAws()
    aws.attach(session)
    aws.answers["CreateTrainingJob"] = lambda _: {"TrainingJobArn": ARN}
    client = session.client("sagemaker")
    monkeypatch.setattr(gc, "get_objects", list)
    install(api_url=api.url)
    with pytest.warns(RoundTheQueueWarning, match="job1 bypasses"):
        client.create_training_job(**REQUEST)
    assert (aws.operations(), submitted(api)) == (["CreateTrainingJob"], [])


def test_L3_uninstalled_nothing_is_queued_nor_warned_of_and_installed_again_all_is(api: FakeApi) -> None:
    session, aws = boto3.Session(), FakeAws()
    aws.attach(session)
    aws.answers["CreateTrainingJob"] = lambda _: {"TrainingJobArn": ARN}
    install(api_url=api.url)
    hooked = session.client("sagemaker")
    uninstall()
    between = session.client("sagemaker")
    for client in (hooked, between):
        client.create_training_job(**REQUEST)
    assert (aws.operations(), submitted(api)) == (["CreateTrainingJob"] * 2, [])
    install(api_url=api.url)
    for client in (hooked, between):
        client.create_training_job(**REQUEST)
    assert submitted(api) == ["job1"] * 2


def test_L3_uninstalled_a_session_that_was_hooked_by_name_stays_so(api: FakeApi) -> None:
    session = boto3.Session()
    install(session, api_url=api.url)
    install(api_url="http://127.0.0.1:1/prod")
    uninstall()
    session.client("sagemaker").create_training_job(**REQUEST)
    assert submitted(api) == ["job1"]


def test_L3_uninstalled_botocore_is_as_it_was(api: FakeApi) -> None:
    send, initializers = BaseClient.__dict__["_make_request"], list(vars(botocore)["_INITIALIZERS"])
    for _ in range(2):
        install(api_url=api.url)
        uninstall()
    assert BaseClient.__dict__["_make_request"] is send
    assert initializers == vars(botocore)["_INITIALIZERS"]


def test_L3_a_forked_worker_queues_with_clients_of_its_parent_and_with_its_own(api: FakeApi) -> None:
    install(api_url=api.url)
    client = of_boto3()
    client.create_training_job(**REQUEST)

    def work() -> None:
        client.create_training_job(**REQUEST)
        of_botocore().create_training_job(**REQUEST)

    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join(60)
    assert (worker.exitcode, submitted(api)) == (0, ["job1"] * 3)


def test_L3_threads_that_install_and_make_sessions_submit_each_job_once(api: FakeApi) -> None:
    def work(number: int) -> None:
        install(api_url=api.url)
        of_botocore().create_training_job(**{**REQUEST, "TrainingJobName": f"job{number}"})

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert sorted(submitted(api)) == [f"job{number}" for number in range(3)]


def test_L3_what_the_hooks_ask_with_is_not_hooked_by_a_second_install(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster_client.jobs.queued_jobs.FRESH_SECONDS", 60)
    session, aws = boto3.Session(), FakeAws()
    aws.attach(session)
    attempt = {"attempt": 0, "training_job_name": "job1", "training_job_arn": ARN, "ended_at": None}
    api.script("GET", "/jobs/job1", Scripted(document={**view(attempts=[attempt]), "request": REQUEST}))
    described = {"TrainingJobName": "job1", "TrainingJobArn": ARN, "TrainingJobStatus": "InProgress"}
    aws.answers["DescribeTrainingJob"] = lambda _: described
    for _ in range(2):
        install(api_url=api.url)
        session.client("sagemaker").describe_training_job(TrainingJobName="job1")
    assert (aws.operations(), api.calls()) == (["DescribeTrainingJob"] * 2, ["GET /jobs/job1"])


@pytest.mark.parametrize("installed", ["for the session", "for the process"])
def test_a_look_at_a_job_and_its_logs_costs_one_call_however_it_was_installed(
    installed: str, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster_client.jobs.queued_jobs.FRESH_SECONDS", 60)
    session, aws = boto3.Session(), FakeAws()
    aws.attach(session)
    attempt = {"attempt": 0, "training_job_name": "job1", "training_job_arn": ARN, "ended_at": None}
    api.script("GET", "/jobs/job1", Scripted(document={**view(attempts=[attempt]), "request": REQUEST}))
    described = {"TrainingJobName": "job1", "TrainingJobArn": ARN, "TrainingJobStatus": "InProgress"}
    aws.answers["DescribeTrainingJob"] = lambda _: described
    aws.answers["DescribeLogStreams"] = lambda _: {"logStreams": []}
    install(session if installed == "for the session" else None, api_url=api.url)
    sagemaker, logs = session.client("sagemaker"), session.client("logs")
    sagemaker.create_training_job(**REQUEST)
    sagemaker.describe_training_job(TrainingJobName="job1")
    logs.describe_log_streams(logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix="job1/")
    assert api.calls() == ["POST /add-job", "GET /jobs/job1"]
    assert aws.operations() == ["DescribeTrainingJob", "DescribeLogStreams"]


def test_L6_below_the_floor_install_refuses_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(botocore, "__version__", "1.39.17")
    with pytest.raises(UnsupportedBotocoreError, match=r"1\.40 or newer, and this is botocore 1\.39\.17"):
        install(api_url="http://127.0.0.1:1/prod")


def test_L12_two_stacks_in_one_process_each_have_their_own_jobs() -> None:
    one, other = boto3.Session(), boto3.Session()
    with running_fake_api() as first, running_fake_api() as second, running_fake_api() as third:
        for api in (first, second, third):
            accept(api)
        install(one, api_url=first.url)
        install(api_url=third.url)
        install(other, api_url=second.url)
        for number, session in enumerate((one, other, boto3.Session()), start=1):
            session.client("sagemaker").create_training_job(**{**REQUEST, "TrainingJobName": f"job{number}"})
        assert [submitted(api) for api in (first, second, third)] == [["job1"], ["job2"], ["job3"]]
        second.received.clear()
        aws = FakeAws()
        aws.attach(other)
        missing = {"__type": "ValidationException", "message": "Requested resource not found."}
        aws.answers["DescribeTrainingJob"] = lambda _: missing
        with pytest.raises(ClientError, match="Requested resource not found"):
            other.client("sagemaker").describe_training_job(TrainingJobName="job9")
        assert second.calls() == ["GET /jobs/job9"]
        assert not {call for api in (first, third) for call in api.calls()} - {"POST /add-job"}


def test_a_session_keeps_its_user_agent_and_its_s3_methods_once_each(api: FakeApi) -> None:
    install(api_url=api.url)
    session = botocore.session.get_session()
    agent = session.user_agent()
    client: Any = session.create_client("sagemaker")
    client.create_training_job(**REQUEST)
    assert session.user_agent() == agent
    assert callable(boto3.Session(botocore_session=session).client("s3").upload_file)


def test_an_answer_has_the_id_of_the_apis_request(api: FakeApi) -> None:
    install(api_url=api.url)
    answer = of_boto3().create_training_job(**REQUEST)["ResponseMetadata"]
    assert (answer["RequestId"], answer["HTTPHeaders"]) == ("r-1", {"x-amzn-requestid": "r-1"})


def test_a_refusal_has_the_id_of_the_apis_request(api: FakeApi) -> None:
    refusal = {"title": "Invalid", "detail": "no", "errors": []}
    api.script(
        "POST", "/add-job", Scripted(status=422, document=refusal, headers={"x-amzn-RequestId": "r-2"})
    )
    install(api_url=api.url)
    client = of_boto3()
    with pytest.raises(client.exceptions.ClientError) as caught:
        client.create_training_job(**REQUEST)
    assert caught.value.response["ResponseMetadata"]["RequestId"] == "r-2"


def test_install_for_the_process_says_what_is_wrong_with_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINMASTER_API_URL", raising=False)
    with pytest.raises(ApiNotConfiguredError):
        install()
    with pytest.raises(InvalidApiUrlError):
        install(api_url="ftp://somewhere")
