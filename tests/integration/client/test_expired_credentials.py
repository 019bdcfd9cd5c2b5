"""O15: credentials expire in the middle: said as such, once; new ones are taken where they can come."""

import os
import threading
from pathlib import Path
from typing import Any

import boto3
import botocore.credentials
import botocore.exceptions
import botocore.session
import pytest
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import ClientError
from trainmaster_client import errors
from trainmaster_client.api import ApiClient
from trainmaster_client.hook import install
from trainmaster_client.hooks.botocore_events import like_the_default, signing_with
from trainmaster_client.http.expiry import is_expired, is_renewable, renew

from tests.integration.client.fake_api import ACCESS_KEY, REGION, REQUEST, SECRET_KEY, FakeApi, Scripted, view
from tests.integration.client.fake_aws import FakeAws

EXPIRED = Scripted(
    status=403,
    document={"message": "The security token included in the request is expired"},
    headers={"content-type": "application/json", "x-amzn-ErrorType": "ExpiredTokenException"},
)
"""As API Gateway says it."""
RIGHTS = ("you need", "logs:", "right", "denied", "not authorized")
OLD, NEW = ("ASIAOLD", "old"), (ACCESS_KEY, SECRET_KEY)
RUNS = view(state="running", training_job_arn="arn:aws:sagemaker:eu-west-1:123456789012:training-job/job1")


def blames_rights(text: str) -> bool:
    return any(word in text.lower() for word in RIGHTS)


@pytest.fixture
def api(api: FakeApi, aws_environment: None) -> FakeApi:
    """Whoever does not sign with the new keys has expired ones."""
    api.refusal = EXPIRED
    return api


def export(monkeypatch: pytest.MonkeyPatch, keys: tuple[str, str]) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys[1])


def write_profile(file: Path, keys: tuple[str, str], *, name: str = "work") -> None:
    file.write_text(f"[{name}]\naws_access_key_id = {keys[0]}\naws_secret_access_key = {keys[1]}\n")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shared credentials file, with old keys; the environment has none."""
    file = tmp_path / "credentials"
    write_profile(file, OLD)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    return file


def key_of(session: boto3.Session) -> str | None:
    found = session.get_credentials()
    return None if found is None else found.access_key


# ---- what AWS and botocore say


def test_O15_an_expired_token_is_said_with_what_to_do(api: FakeApi) -> None:
    session = boto3.Session(*OLD, region_name=REGION)
    with pytest.raises(errors.GatewayRefusedError) as caught:
        ApiClient(api.url, session).job("job1")
    assert "The AWS credentials have expired. To log in again: aws sso login" in str(caught.value)
    assert (caught.value.may_be_renewed, blames_rights(str(caught.value))) == (False, False)


def vain_refresh() -> RefreshableCredentials:
    expired = {"access_key": "a", "secret_key": "b", "token": "c", "expiry_time": "2020-01-01T00:00:00Z"}
    return RefreshableCredentials.create_from_metadata(expired, lambda: expired, "custom-process")


def ended_login() -> RefreshableCredentials:
    def refresh() -> Any:
        raise botocore.exceptions.UnauthorizedSSOTokenError

    metadata = {"access_key": "a", "secret_key": "b", "token": "c", "expiry_time": "2020-01-01T00:00:00Z"}
    return RefreshableCredentials.create_from_metadata(metadata, refresh, "sso")


def assumed_with_expired_ones() -> RefreshableCredentials:
    def refresh() -> Any:
        raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "it is expired"}}, "AssumeRole")

    metadata = {"access_key": "a", "secret_key": "b", "token": "c", "expiry_time": "2020-01-01T00:00:00Z"}
    return RefreshableCredentials.create_from_metadata(metadata, refresh, "assume-role")


@pytest.mark.parametrize("make", [vain_refresh, ended_login, assumed_with_expired_ones])
def test_O15_credentials_that_cannot_renew_themselves_have_expired(make: Any, api: FakeApi) -> None:
    found = make()
    session = signing_with(lambda: found, region=REGION)
    with pytest.raises(errors.ExpiredCredentialsError) as caught:
        ApiClient(api.url, session).job("job1")
    assert "To log in again: aws sso login" in str(caught.value)
    assert (caught.value.may_be_renewed, caught.value.trouble) == (True, "expired-credentials")
    assert api.received == []


def test_another_runtime_error_says_nothing_of_credentials() -> None:
    with pytest.raises(RuntimeError) as caught:
        threading.Thread().join()
    assert not is_expired(caught.value)


# ---- new ones in the place of old ones


def test_O15_a_login_is_taken_from_the_environment_by_a_session_that_exists(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(monkeypatch, OLD)
    client = ApiClient(api.url, boto3.Session())
    with pytest.raises(errors.GatewayRefusedError) as caught:
        client.job("job1")
    assert caught.value.may_be_renewed
    export(monkeypatch, NEW)
    api.script("GET", "/jobs/job1", Scripted(document=view()))
    assert client.job("job1")["name"] == "job1"


@pytest.mark.parametrize("by_variable", [True, False])
def test_O15_a_login_is_taken_from_the_profile_that_the_session_has(
    api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch, *, by_variable: bool
) -> None:
    if by_variable:
        monkeypatch.setenv("AWS_PROFILE", "work")
    session = boto3.Session(profile_name=None if by_variable else "work")
    other: Any = session.client("logs")
    client = ApiClient(api.url, session)
    with pytest.raises(errors.GatewayRefusedError):
        client.job("job1")
    write_profile(file, NEW)
    api.script("GET", "/jobs/job1", Scripted(document=view()))
    assert client.job("job1")["name"] == "job1"
    assert other._request_signer._credentials.access_key == ACCESS_KEY, "clients share what the session has"


def test_O15_the_default_sessions_credentials_are_read_again_for_the_session_in_its_place(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(monkeypatch, OLD)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", boto3.Session())
    session = like_the_default()
    assert (is_renewable(session), renew(session)) == (True, False)
    export(monkeypatch, NEW)
    assert (renew(session), renew(session)) == (True, False)
    assert key_of(session) == ACCESS_KEY


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: boto3.Session(*OLD, region_name=REGION), id="keys that the program gave"),
        pytest.param(
            lambda: signing_with(lambda: Credentials(*OLD, method="env"), region=REGION),
            id="a client's, whose session is not known",
        ),
        pytest.param(lambda: signing_with(lambda: None, region=REGION), id="none"),
    ],
)
def test_keys_whose_place_is_not_known_are_never_replaced(make: Any, aws_environment: None) -> None:
    session = make()
    assert (is_renewable(session), renew(session)) == (False, False)


def test_a_profile_is_not_replaced_by_another_place_that_has_keys(
    api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = boto3.Session(profile_name="work")
    assert key_of(session) == OLD[0]
    file.write_text("")
    export(monkeypatch, NEW)
    assert renew(session) is False
    assert key_of(session) == OLD[0]


def test_the_environments_keys_are_not_replaced_by_those_of_a_file(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(monkeypatch, OLD)
    session = boto3.Session()
    assert key_of(session) == OLD[0]
    write_profile(tmp_path / "credentials", NEW, name="default")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    assert (renew(session), key_of(session)) == (False, OLD[0])


# ---- through the hooks


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> tuple[boto3.Session, FakeAws]:
    export(monkeypatch, OLD)
    session, aws = boto3.Session(), FakeAws()
    aws.attach(session)
    return session, aws


def refused(call: Any, **arguments: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("describe_training_job", {"TrainingJobName": "job1"}),
        ("stop_training_job", {"TrainingJobName": "job1"}),
        ("create_training_job", REQUEST),
        ("list_training_jobs", {}),
        ("update_training_job", {"TrainingJobName": "job1"}),
        ("list_hyper_parameter_tuning_jobs", {}),
    ],
)
def test_O15_the_hooks_say_expired_not_denied(
    operation: str, arguments: dict[str, Any], api: FakeApi, aws: tuple[boto3.Session, FakeAws]
) -> None:
    session, _ = aws
    install(session, api_url=api.url)
    code, message = refused(getattr(session.client("sagemaker"), operation), **arguments)
    assert code == "ExpiredTokenException"
    assert "To log in again" in message
    assert not blames_rights(message)


def test_O15_what_sagemaker_calls_expired_is_said_with_what_to_do_and_taken_up_after_a_login(
    api: FakeApi, aws: tuple[boto3.Session, FakeAws], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue answered while SageMaker no longer did: the keys expired in between."""
    api.refusal = None
    session, fake = aws
    attempts = [{"attempt": 0, "training_job_name": "job1", "training_job_arn": RUNS["training_job_arn"]}]
    runs = Scripted(document={**RUNS, "attempts": attempts, "request": REQUEST})
    monkeypatch.setattr(api, "answer", lambda _: runs)
    export(monkeypatch, NEW)
    install(session, api_url=api.url)
    client = session.client("sagemaker")
    said = {"__type": "ExpiredTokenException", "message": "The security token is expired"}
    fake.answers["DescribeTrainingJob"] = lambda _: said
    code, message = refused(client.describe_training_job, TrainingJobName="job1")
    assert code == "ExpiredTokenException"
    assert "To log in again" in message

    def described(_: Any) -> dict[str, Any]:
        fake.answers["DescribeTrainingJob"] = lambda _: {
            "TrainingJobName": "job1",
            "TrainingJobArn": RUNS["training_job_arn"],
            "TrainingJobStatus": "InProgress",
            "SecondaryStatus": "Training",
        }
        os.environ["AWS_ACCESS_KEY_ID"] = "ASIANEWER"
        return said

    fake.answers["DescribeTrainingJob"] = described
    assert client.describe_training_job(TrainingJobName="job1")["TrainingJobStatus"] == "InProgress"
