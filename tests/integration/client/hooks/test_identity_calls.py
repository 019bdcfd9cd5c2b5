"""Where the SDKs' GetCallerIdentity goes: they name AWS's address of STS, the environment another one."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from trainmaster_client.hook import install, uninstall

from tests.integration.client.fake_api import REGION

OURS = "http://127.0.0.1:4599"
ANSWER = b"<GetCallerIdentityResponse><GetCallerIdentityResult/></GetCallerIdentityResponse>"

pytestmark = pytest.mark.usefixtures("aws_environment")


class _Raw(BytesIO):
    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self.read()


def asked(session: boto3.Session, endpoint_url: str | None, **options: Any) -> AWSPreparedRequest:
    """What would have been sent."""
    sent: list[AWSPreparedRequest] = []

    def answer(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        sent.append(request)
        headers: Any = {"content-type": "text/xml"}
        return AWSResponse(request.url, 200, headers, _Raw(ANSWER))

    client = session.client("sts", endpoint_url=endpoint_url, **options)
    client.meta.events.register("before-send", answer)  # type: ignore[arg-type]  # stubs: no answer
    client.get_caller_identity()
    return sent[0]


@pytest.fixture(params=["for the session", "for the process"])
def session(request: pytest.FixtureRequest) -> Iterator[boto3.Session]:
    api_url = "http://127.0.0.1:1/prod"
    session = boto3.Session()
    install(session if request.param == "for the session" else None, api_url=api_url)
    yield session
    uninstall()


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS"])
@pytest.mark.parametrize("host", [f"sts.{REGION}.amazonaws.com", "sts.amazonaws.com"])
def test_aws_s_address_is_left_for_the_one_that_the_environment_names(
    variable: str, host: str, session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, OURS)
    sent = asked(session, f"https://{host}")
    assert sent.url == f"{OURS}/"
    assert "Credential=" in str(sent.headers["Authorization"])


@pytest.mark.parametrize("address", [f"https://sts.{REGION}.amazonaws.com", "https://sts.amazonaws.com"])
def test_where_the_environment_names_none_the_call_stays_where_it_was(
    address: str, session: boto3.Session
) -> None:
    assert asked(session, address).url == f"{address}/"


def test_an_address_that_is_not_aws_s_own_is_the_callers_choice(
    session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", OURS)
    there = "https://vpce-1.sts.eu-west-1.vpce.amazonaws.com"
    assert asked(session, there).url == f"{there}/"
