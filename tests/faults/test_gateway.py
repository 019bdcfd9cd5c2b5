"""The local gateway: who may call it, credentials that expire, and two stacks beside each other."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session
from trainmaster_client.gateway.credential_chain import WALK_SECONDS

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    ARN,
    REGION,
    REQUEST,
    SECRET_KEY,
    Scripted,
    problem,
    view,
)
from tests.integration.client.gateway_world import GatewayWorld, running_gateway


@pytest.fixture(scope="module")
def running() -> Iterator[GatewayWorld]:
    with patch("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0), running_gateway() as world:
        yield world


@pytest.fixture
def world(running: GatewayWorld) -> GatewayWorld:
    running.api.forget()
    running.sagemaker.forget()
    return running


def accept(world: GatewayWorld) -> None:
    world.api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))


def refused(call: Any, **arguments: Any) -> dict[str, Any]:
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    response: dict[str, Any] = dict(raised.value.response)
    return response


def test_L8_a_job_is_created_described_while_it_waits_and_a_name_that_is_taken_refused(world: GatewayWorld):
    sagemaker = world.client()
    accept(world)
    assert sagemaker.create_training_job(**REQUEST)["TrainingJobArn"] == ARN
    assert json.loads(world.api.received[0].body) == REQUEST
    world.api.script("GET", "/jobs/job1", Scripted(document={**view(), "request": REQUEST}))
    seen = sagemaker.describe_training_job(TrainingJobName="job1")
    assert (seen["TrainingJobStatus"], seen["SecondaryStatus"]) == ("InProgress", "Pending")
    assert seen["CreationTime"] == datetime(2026, 11, 21, 1, tzinfo=UTC)
    world.api.script("POST", "/add-job", problem(409, "Conflict", "TrainingJobName: is in use"))
    taken = refused(sagemaker.create_training_job, **REQUEST)
    assert taken["Error"]["Code"] == "ResourceInUse"
    assert taken["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert taken["ResponseMetadata"]["RequestId"]
    assert world.sagemaker.calls == []


@pytest.mark.parametrize("path", ["another-token", "", "ui", "api"])
def test_L9_a_wrong_token_in_the_path_is_refused_and_nothing_forwarded(path: str, world: GatewayWorld):
    wrong = world.client(url=f"http://127.0.0.1:{world.port}/{path}")
    with pytest.raises(ClientError) as raised:
        wrong.create_training_job(**REQUEST)
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] in {403, 404}
    assert world.api.received == []
    assert world.sagemaker.calls == []


def test_L9_the_gateways_own_key_with_a_wrong_secret_is_refused(world: GatewayWorld):
    said = refused(world.client(ACCESS_KEY, "wrong").create_training_job, **REQUEST)
    assert said["Error"]["Code"] == "InvalidSignatureException"
    assert said["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert world.api.received == []


def test_L9_the_gateways_own_key_with_its_secret_is_let_in(world: GatewayWorld):
    accept(world)
    assert world.client(ACCESS_KEY, SECRET_KEY).create_training_job(**REQUEST)["TrainingJobArn"] == ARN


@pytest.mark.parametrize(
    ("minutes", "body", "status"),
    [
        pytest.param(0, b'{"MaxResults": 1}', 200, id="as it was signed"),
        pytest.param(0, b'{"MaxResults": 2}', 403, id="another body"),
        pytest.param(20, b'{"MaxResults": 1}', 403, id="20 minutes old"),
        pytest.param(-20, b'{"MaxResults": 1}', 403, id="20 minutes ahead"),
    ],
)
def test_L9_a_call_signed_with_the_gateways_key_is_let_in_as_it_was_signed_and_fresh(
    minutes: float, body: bytes, status: int, world: GatewayWorld
):
    world.sagemaker.answers["ListModels"] = lambda _: {"Models": []}
    assert posted(world, signed=b'{"MaxResults": 1}', body=body, minutes_ago=minutes) == status
    assert len(world.sagemaker.calls) == (status == 200)


def posted(world: GatewayWorld, *, signed: bytes, body: bytes, minutes_ago: float) -> int:
    """The status of a ListModels whose body was changed after it was signed."""
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "SageMaker.ListModels"}
    request = AWSRequest("POST", f"{world.url}/", data=signed, headers=headers)
    then = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    with patch("botocore.auth.get_current_datetime", return_value=then.replace(tzinfo=None)):
        SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "sagemaker", REGION).add_auth(request)
    prepared = request.prepare()
    prepared.body = body
    answer = URLLib3Session().send(prepared)
    return int(answer.status_code)


@pytest.mark.parametrize(
    "header",
    [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site"), ("Host", "evil.example:4600")],
    ids=["a page of another site", "a page's fetch", "a name that was bound to this machine"],
)
def test_L9_a_browser_is_refused_although_it_knows_the_token(header: tuple[str, str], world: GatewayWorld):
    headers = {"x-amz-target": "SageMaker.ListModels", header[0]: header[1]}
    answer = URLLib3Session().send(AWSRequest("POST", f"{world.url}/", data=b"{}", headers=headers).prepare())
    assert answer.status_code == 403
    assert json.loads(answer.content)["__type"] == "AccessDeniedException"
    assert world.sagemaker.calls == []


def test_L9_a_call_that_was_signed_for_another_region_is_refused_naming_the_queues(world: GatewayWorld):
    said = refused(world.client(region="us-west-2").create_training_job, **REQUEST)
    assert said["Error"]["Code"] == "InvalidSignatureException"
    assert REGION in said["Error"]["Message"]
    assert world.api.received == []


class Chain:
    """As the user renews them: a file that is written again."""

    def __init__(self) -> None:
        self.keys = Credentials("AKIDOLD", "old", "token")
        self.walks = 0

    def __call__(self) -> Credentials:
        self.walks += 1
        return self.keys


def test_L10_expired_credentials_are_said_at_once_and_new_ones_used_without_a_restart():
    chain = Chain()
    expired = Scripted(
        status=403,
        document={"message": "The security token included in the request is expired"},
        headers={"content-type": "application/json", "x-amzn-ErrorType": "ExpiredTokenException"},
    )
    with (
        running_gateway(chain) as world,
        patch("trainmaster_client.gateway.credential_chain.WALK_SECONDS", 0),
    ):
        world.api.refusal = expired
        said = refused(world.client().create_training_job, **REQUEST)
        assert said["Error"]["Code"] == "ExpiredTokenException"
        assert "aws sso login" in said["Error"]["Message"]
        assert refused(world.client().list_models)["Error"]["Code"] == "ExpiredTokenException"
        chain.keys = Credentials(ACCESS_KEY, SECRET_KEY)
        accept(world)
        world.sagemaker.answers["ListModels"] = lambda _: {"Models": []}
        assert world.client().create_training_job(**REQUEST)["TrainingJobArn"] == ARN
        assert world.client().list_models()["Models"] == []
        assert world.api.calls() == ["POST /add-job"]


def test_L10_calls_that_find_their_credentials_expired_walk_the_chain_once_for_all():
    chain = Chain()
    with running_gateway(chain) as world:
        for _ in range(5):
            assert refused(world.client().list_models)["Error"]["Code"] == "ExpiredTokenException"
        assert chain.walks <= 2 + 1, f"within {WALK_SECONDS} s"


def test_L10_credentials_that_expire_under_way_are_renewed_and_the_call_made_once_more():
    chain = Chain()
    with running_gateway(chain) as world:
        world.sagemaker.answers["ListModels"] = lambda _: {"Models": []}
        world.sagemaker.keys = ReadOnlyCredentials("AKIDOLD", "old", "token")
        assert world.client().list_models()["Models"] == []
        chain.keys = Credentials(ACCESS_KEY, SECRET_KEY)
        world.sagemaker.keys = ReadOnlyCredentials(ACCESS_KEY, SECRET_KEY, None)
        assert world.client().list_models()["Models"] == []


def test_L12_two_gateways_to_two_stacks_each_keep_to_their_own_queue(world: GatewayWorld):
    with running_gateway() as other:
        accept(world)
        accept(other)
        other.client().create_training_job(**REQUEST)
        assert (world.api.calls(), other.api.calls()) == ([], ["POST /add-job"])
        world.client().create_training_job(**REQUEST)
        assert (world.api.calls(), other.api.calls()) == (["POST /add-job"], ["POST /add-job"])
