"""boto3 clients whose requests never leave the process."""

import io
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config

from local.engine.calls import AwsCall, protocol_of, read_call
from local.engine.errors import error_response
from local.identity.sigv4 import read_claim
from local.wire import AwsError, Request, Response

_KEY_ID = "AKIALOCALTWINITSELF0"
_ONE_ATTEMPT = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})


def in_process_client(
    service: str, *, region: str, endpoint_url: str, serve: Callable[[AwsCall, Request], Response]
) -> Any:  # noqa: ANN401  boto3's clients are typed by their service
    client = _session(region).client(service, endpoint_url=endpoint_url, config=_ONE_ATTEMPT)  # type: ignore[call-overload]

    def send(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        return as_botocore(request, answered(received(request), serve))

    client.meta.events.register_first("before-send", send)
    return client


@cache
def _session(region: str) -> boto3.session.Session:
    """Return one session for all clients: each new one reads botocore's endpoints again."""
    return boto3.session.Session(
        aws_access_key_id=_KEY_ID,
        aws_secret_access_key="unused",  # noqa: S106
        region_name=region,
    )


def answered(request: Request, serve: Callable[[AwsCall, Request], Response]) -> Response:
    claim = read_claim(request)
    assert claim is not None, "botocore signs every request of these clients"
    service = None
    try:
        call = read_call(request, signing_name=claim.service, region=claim.region)
        service = call.service
        return serve(call, request)
    except AwsError as error:
        return error_response(error, protocol_of(request, claim.service), service)


def received(request: AWSPreparedRequest) -> Request:
    url = urlsplit(request.url)
    body: Any = request.body
    if hasattr(body, "read"):
        body = body.read()
    return Request(
        method=request.method,
        raw_path=url.path or "/",
        query=url.query,
        headers={"host": url.netloc}
        | {
            name.lower(): value.decode() if isinstance(value, bytes) else str(value)
            for name, value in request.headers.items()
        },
        body=body.encode() if isinstance(body, str) else bytes(body or b""),
    )


def as_botocore(request: AWSPreparedRequest, response: Response) -> AWSResponse:
    headers: Any = response.headers  # becomes botocore's own dictionary
    return AWSResponse(request.url, response.status, headers, _Raw(response.body))


class _Raw(io.BytesIO):
    """A body as botocore reads it from urllib3."""

    def stream(self, amt: int = 65536, **_: object) -> Iterator[bytes]:
        while chunk := self.read(amt):
            yield chunk
