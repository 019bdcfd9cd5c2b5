"""The signer of POST requests and botocore's: the same headers for every body, instant and pair of keys."""

from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.adapters.post_signer import PostSigner

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "User-Agent": "Boto3/1  md/Botocore#1",
    "X-Amz-Target": "DynamoDB_20120810.GetItem",
}
URLS = [
    "https://dynamodb.us-east-1.amazonaws.com/",
    "https://dynamodb.us-east-1.amazonaws.com:443/",
    "http://127.0.0.1:4566/",
    "http://[::1]:8000/",
    "https://vpce-1.example.com/behind/a%20gateway/",
]
texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)
keys = st.builds(ReadOnlyCredentials, texts, texts, st.none() | texts)


def botocores(
    url: str, headers: dict[str, str], body: bytes, keys: ReadOnlyCredentials, at: datetime
) -> dict[str, str]:
    request = AWSRequest("POST", url, data=body, headers=headers)
    with mock.patch("botocore.auth.get_current_datetime", return_value=at):
        SigV4Auth(keys, "dynamodb", "us-east-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


def ours(
    url: str, headers: dict[str, str], body: bytes, keys: ReadOnlyCredentials, at: datetime
) -> dict[str, str]:
    signer = PostSigner(url, service="dynamodb", region="us-east-1")
    return {name.lower(): value for name, value in signer.signed(headers, body, keys, at=at).items()}


@given(
    st.sampled_from(URLS),
    st.dictionaries(st.sampled_from(["X-Amzn-Trace-Id", "X-Other", "Accept-Encoding"]), texts),
    st.binary(max_size=300),
    keys,
    st.timedeltas(timedelta(), timedelta(days=5000)).map(NOON.__add__),
)
def test_every_header_is_botocores_to_the_bit(
    url: str, more: dict[str, str], body: bytes, keys: ReadOnlyCredentials, at: datetime
) -> None:
    signed = ours(url, HEADERS | more, body, keys, at)
    host = signed.pop("host")
    assert signed == botocores(url, HEADERS | more, body, keys, at)
    assert host in url


@pytest.mark.parametrize("changed", ["secret_key", "token", "access_key"])
def test_renewed_keys_sign_at_once(changed: str) -> None:
    first = ReadOnlyCredentials("AKIA", "secret", "token")
    second = first._replace(**{changed: "renewed"})
    for keys in (first, second, first):
        assert ours(URLS[0], HEADERS, b"{}", keys, NOON) == {
            **botocores(URLS[0], HEADERS, b"{}", keys, NOON),
            "host": "dynamodb.us-east-1.amazonaws.com",
        }
