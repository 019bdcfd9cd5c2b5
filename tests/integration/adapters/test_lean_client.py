"""A lean client and the botocore client that it is made of: the same requests, answers, tries and errors."""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

import botocore.session
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError
from trainmaster.adapters.client_settings import TABLE
from trainmaster.adapters.lean_client import LeanClient

from local.engine.client import as_botocore, received
from local.http_server import HttpServer
from local.identity.sigv4 import read_claim
from local.wire import Request, Response

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
GET = {"TableName": "t", "Key": KEY, "ConsistentRead": True}


@dataclass(slots=True)
class Far:
    """The far side: what it answers in turn, and what it was sent."""

    answers: list[Response | Exception] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def send(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        self.requests.append(received(request))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return as_botocore(request, answer)


def client_of(far: Far, *, kind: str, service: str = "dynamodb", keys: bool = True) -> Any:
    session = botocore.session.get_session()
    if keys:
        session.set_credentials("testing", "testing", "token")
    else:
        session.get_component("credential_provider").providers.clear()
    session.set_config_variable("region", "us-east-1")
    client = session.create_client(service, config=TABLE)
    client.meta.events.register("before-send", far.send)  # type: ignore[arg-type]  # the stubs know no answers
    return LeanClient(client) if kind == "lean" else client


@pytest.fixture(params=["botocore", "lean"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def far() -> Iterator[Far]:
    found = Far()
    with mock.patch("botocore.endpoint.time", SimpleNamespace(sleep=found.waits.append)):
        yield found


def ok(body: dict[str, Any], **headers: str) -> Response:
    return Response(status=200, body=json.dumps(body).encode(), headers=headers)


def refused(code: str, status: int = 400, **members: Any) -> Response:
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no", **members}
    return Response(status=status, body=json.dumps(body).encode(), headers={})


def test_the_request_says_the_same_and_is_signed_with_the_session_token(far: Far, kind: str) -> None:
    far.answers = [ok({"Item": KEY})]
    answer = client_of(far, kind=kind).get_item(**GET)
    assert answer["Item"] == KEY
    (request,) = far.requests
    assert (request.method, request.raw_path) == ("POST", "/")
    assert json.loads(request.body) == GET
    assert request.headers["x-amz-target"] == "DynamoDB_20120810.GetItem"
    assert request.headers["content-type"] == "application/x-amz-json-1.0"
    claim = read_claim(request)
    assert claim is not None
    assert (claim.service, claim.region, claim.session_token) == ("dynamodb", "us-east-1", "token")
    assert {"host", "x-amz-date", "x-amz-target", "x-amz-security-token"} <= set(claim.signed_headers)


def test_bytes_travel_as_base64(far: Far, kind: str) -> None:
    far.answers = [ok({})]
    client_of(far, kind=kind).put_item(TableName="t", Item={**KEY, "body": {"B": b"\x00\xff"}})
    assert json.loads(far.requests[0].body)["Item"]["body"] == {"B": b64encode(b"\x00\xff").decode()}


@pytest.mark.parametrize(
    "trouble",
    [
        refused("ProvisionedThroughputExceededException"),
        refused("ThrottlingException"),
        refused("InternalServerError", 500),
        Response(status=503, body=b"", headers={}),
        ReadTimeoutError(endpoint_url="https://x"),
        ConnectTimeoutError(endpoint_url="https://x"),
    ],
    ids=["throughput", "throttled", "500", "503", "no answer", "no connection"],
)
def test_what_passes_is_tried_three_times_with_waits_between(
    far: Far, trouble: Response | Exception, kind: str
) -> None:
    far.answers = [trouble, trouble, ok({"Item": KEY})]
    assert client_of(far, kind=kind).get_item(**GET)["Item"] == KEY
    assert len(far.requests) == 3
    assert len(far.waits) == 2
    assert far.requests[0].body == far.requests[2].body


def test_the_last_try_is_the_one_that_is_raised(far: Far, kind: str) -> None:
    far.answers = [
        refused("ThrottlingException"),
        refused("ThrottlingException"),
        refused("InternalServerError", 500),
    ]
    with pytest.raises(ClientError) as error:
        client_of(far, kind=kind).get_item(**GET)
    assert error.value.response["Error"]["Code"] == "InternalServerError"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert error.value.operation_name == "GetItem"
    far.answers = [ReadTimeoutError(endpoint_url="https://x")] * 3
    with pytest.raises(ReadTimeoutError):
        client_of(far, kind=kind).get_item(**GET)


def test_a_cancelled_transaction_names_its_reasons_and_is_not_repeated(far: Far, kind: str) -> None:
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Message": "no"}]
    far.answers = [refused("TransactionCanceledException", CancellationReasons=reasons)]
    client = client_of(far, kind=kind)
    put = {"Put": {"TableName": "t", "Item": KEY}}
    with pytest.raises(client.exceptions.TransactionCanceledException) as error:
        client.transact_write_items(TransactItems=[put, put], ClientRequestToken="token")
    assert error.value.response["CancellationReasons"] == reasons
    assert len(far.requests) == 1


def test_many_failures_use_up_the_retries_and_successes_bring_them_back(far: Far, kind: str) -> None:
    client = client_of(far, kind=kind)
    far.answers = [refused("InternalServerError", 500) for _ in range(1000)]
    for _ in range(100):
        with pytest.raises(ClientError):
            client.get_item(**GET)
    few = len(far.requests)
    assert few < 300
    far.answers = [ok({}) for _ in range(100)]
    for _ in range(100):
        client.get_item(**GET)
    far.requests.clear()
    far.answers = [refused("InternalServerError", 500), ok({})]
    client.get_item(**GET)
    assert len(far.requests) == 2


def test_an_answer_that_was_damaged_on_its_way_is_asked_for_again(far: Far, kind: str) -> None:
    whole = ok({"Item": KEY})
    right = str(zlib.crc32(whole.body))
    far.answers = [ok({"Item": {}}, **{"x-amz-crc32": right}), ok({"Item": KEY}, **{"x-amz-crc32": right})]
    assert client_of(far, kind=kind).get_item(**GET)["Item"] == KEY


def test_without_keys_nothing_is_sent(far: Far, kind: str) -> None:
    with pytest.raises(NoCredentialsError):
        client_of(far, kind=kind, keys=False).get_item(**GET)
    assert not far.requests


def test_only_the_methods_that_are_named_are_lean(far: Far) -> None:
    plain = client_of(far, kind="botocore", service="sagemaker")
    client = LeanClient(plain, only=("create_training_job",))
    far.answers = [ok({"TrainingJobArn": "arn"}), ok({"Tags": []})]
    assert client.create_training_job(TrainingJobName="a") == {"TrainingJobArn": "arn"}
    assert json.loads(far.requests[0].body) == {"TrainingJobName": "a"}
    assert client.list_tags == plain.list_tags


def test_calls_over_a_connection_that_stays_open() -> None:
    bodies: list[bytes] = []

    def answer(request: Request) -> Response:
        bodies.append(request.body)
        return ok({"Item": KEY})

    server = HttpServer(0, answer)
    server.start()
    try:
        session = botocore.session.get_session()
        session.set_credentials("testing", "testing")
        url = f"http://127.0.0.1:{server.port}"
        client = LeanClient(session.create_client("dynamodb", "us-east-1", endpoint_url=url, config=TABLE))
        for _ in range(3):
            assert client.get_item(**GET)["Item"] == KEY
    finally:
        server.close()
    assert [json.loads(body) for body in bodies] == [GET] * 3
