"""Calls that are not the queue's: the same body to SageMaker, signed again, and its answer streamed back."""

import os
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from trainmaster_client.gateway.admission import SERVICE
from trainmaster_client.gateway.json_protocol import Reply, error_code
from trainmaster_client.http.bounded_answers import UnboundedAnswerError, whole_body
from trainmaster_client.http.expiry import EXPIRED_CODES
from trainmaster_client.http.page_requests import LOOPBACK_NAMES
from trainmaster_client.http.transport import connections

ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_SAGEMAKER"
"""Variable that callers set to the gateway's URL. Source: SDKs and Tools Reference Guide, Service-specific
endpoints."""
_CHUNK_BYTES = 64 * 1024
_KEPT_REQUEST_HEADERS = (
    "accept",
    "accept-encoding",
    "content-type",
    "user-agent",
    "x-amz-target",
    "x-amz-user-agent",
)
_KEPT_PREFIX = "amz-sdk-"
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "date",
        "keep-alive",
        "proxy-authenticate",
        "server",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers between two machines, not of an answer. Source: RFC 9110, section 7.6.1. Our server sets its own
date."""


def is_a_gateway(url: str) -> bool:
    """Tell whether a URL is a gateway's: it has its token as path; SageMaker's and the twin's have none."""
    parts = urlsplit(url)
    return (parts.hostname or "") in LOOPBACK_NAMES and parts.path.strip("/") != ""


def sagemaker_url(session: boto3.Session, *, region: str, env: Mapping[str, str] = os.environ) -> str:
    """Return where the session's own calls would go, but never a gateway."""
    config, url = None, None
    if is_a_gateway(env.get(ENDPOINT_VARIABLE, "")):
        url = env.get("AWS_ENDPOINT_URL") or None
        config = Config(ignore_configured_endpoint_urls=True)  # type: ignore[call-arg]
    client = session.client("sagemaker", region_name=region, endpoint_url=url, config=config)
    return str(client.meta.endpoint_url).rstrip("/")


class SageMakerEndpoint:
    """Sends calls to SageMaker, signed with the gateway's credentials. Threads may share it."""

    def __init__(self, url: str, credentials: Credentials, *, region: str) -> None:
        self.url = url
        self._credentials = credentials
        self._region = region
        self._http = connections(url)

    def send(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """Return the answer as it is, errors included.

        If AWS calls the credentials expired, the chain is walked for others, once: nothing was done. Raises
        botocore's errors of connections and CredentialsError.
        """
        signed_with = self._credentials.get_frozen_credentials()
        reply = self._sent(headers, body)
        if reply.code in EXPIRED_CODES and hasattr(self._credentials, "renew"):
            self._credentials.renew(refused=signed_with)
            return self._sent(headers, body)
        return reply

    def _sent(self, headers: Mapping[str, str], body: bytes) -> Reply:
        kept = {
            name: value
            for name, value in headers.items()
            if name in _KEPT_REQUEST_HEADERS or name.startswith(_KEPT_PREFIX)
        }
        request = AWSRequest(method="POST", url=f"{self.url}/", data=body, headers=kept, stream_output=True)
        SigV4Auth(self._credentials.get_frozen_credentials(), SERVICE, self._region).add_auth(request)
        response = self._http.send(request.prepare())
        answered = {
            name: value for name, value in response.headers.items() if name.lower() not in _HOP_BY_HOP
        }
        if response.status_code < HTTPStatus.BAD_REQUEST:
            return Reply(status=response.status_code, headers=answered, body=_streamed(response.raw))
        whole = _whole(response.raw)
        code = error_code(whole, answered)
        return Reply(status=response.status_code, headers=answered, body=whole, code=code)


def _whole(raw: Any) -> bytes:  # noqa: ANN401  urllib3's answer
    """Read an error's body, before it is passed on; one that has no end is left out."""
    try:
        return whole_body(_streamed(raw))
    except UnboundedAnswerError:
        return b""


def _streamed(raw: Any) -> Iterator[bytes]:  # noqa: ANN401  urllib3's answer
    """Yield the body as it comes, still compressed if SageMaker compressed it for the caller."""
    try:
        yield from raw.stream(_CHUNK_BYTES, decode_content=False)
    finally:
        raw.close() if not raw.closed else raw.release_conn()
