"""Which URLs are taken, and for which region a request is signed. What goes over the wire: test_api."""

import boto3
import pytest
from trainmaster_client.errors import CredentialsError, InvalidApiUrlError
from trainmaster_client.http.transport import SignedTransport

SESSION = boto3.Session("AKID", "secret", region_name="eu-west-1")


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://api.example.com/prod", id="plain http to another machine"),
        pytest.param("ftp://127.0.0.1/prod", id="not http"),
        pytest.param("https:///prod", id="no host"),
        pytest.param("https://host/prod?x=1", id="query"),
        pytest.param("https://host/prod#x", id="fragment"),
        pytest.param("https://user:pw@host/prod", id="user name"),
        pytest.param("https://host:port/prod", id="port that is none"),
        pytest.param("http://[::1", id="broken"),
        pytest.param("abc123", id="only an id"),
        pytest.param("", id="empty"),
    ],
)
def test_what_is_no_api_url_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(InvalidApiUrlError) as caught:
        SignedTransport(url, SESSION)
    assert repr(url) in str(caught.value)


def test_a_slash_at_the_end_is_not_part_of_the_url() -> None:
    assert SignedTransport("http://[::1]:4599/prod/", SESSION).api_url == "http://[::1]:4599/prod"


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://a1-vpce-0b.execute-api.us-east-2.amazonaws.com/prod", "us-east-2"),
        ("https://vpce-0b.execute-api.us-east-2.vpce.amazonaws.com/prod", "us-east-2"),
        ("https://a1.execute-api.cn-north-1.amazonaws.com.cn/prod", "cn-north-1"),
        ("https://trainmaster.example.com/prod", "eu-west-1"),
        ("http://127.0.0.1:4599/prod", "eu-west-1"),
    ],
)
def test_the_region_is_the_urls_own_or_else_the_sessions(url: str, region: str) -> None:
    request = SignedTransport(url, SESSION)._signed("GET", "/jobs", None)
    assert f"/{region}/execute-api/aws4_request" in request.headers["Authorization"]


def test_without_any_region_the_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(CredentialsError, match="no AWS region"):
        SignedTransport("http://127.0.0.1:4599/prod", boto3.Session("AKID", "secret"))
