"""Ranges of objects over plain connections, by addresses that boto3 has signed.

A GET of 1 MiB by boto3 takes 1.7 ms of CPU, three quarters of them for what is the same in each request. A
signed address serves all ranges of its object, so that only the transfer is left. Whatever is not the range
that was asked for gives None: boto3 asks once more, with its retries, its renewed credentials and its errors.
"""

import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import botocore.session
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

TIMEOUT_SECONDS = 15
DIRECTORY_BUCKET = "--x-s3"
"""How names of S3 Express buckets end; their requests are signed otherwise, by boto3 alone."""
_SIGNED_SECONDS, _USED_SECONDS = 900, 600
"""How long an address is good, and how long it is used; it ends no later than what signed it."""
_REFUSALS = 3
"""Of addresses, without a success in between: from then on boto3 is asked at once."""
_PARTIAL = 206
_CLIENT_ERRORS = range(300, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Bytes of an object, of one version of it where that is known."""

    offset: int
    size: int
    etag: str | None

    @property
    def range(self) -> str:
        return f"bytes={self.offset}-{self.offset + self.size - 1}"

    def is_told_by(self, content_range: str | None, length: int | None) -> bool:
        """The answer has these bytes, or as many of them as the object has."""
        unit, _, told = (content_range or "").partition(" ")
        bounds, _, whole = told.partition("/")
        first, _, last = bounds.partition("-")
        if unit != "bytes" or not (first.isdecimal() and last.isdecimal() and whole.isdecimal()):
            return False
        end = min(self.offset + self.size, int(whole))
        return (int(first), int(last) + 1, length) == (self.offset, end, end - self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    content: bytes
    etag: str | None


class _Closing:
    """A connection that ends where nothing keeps it: after an error, or with its reader."""

    def __init__(self, connection: HTTPConnection) -> None:
        self.http = connection

    def __del__(self) -> None:
        self.http.close()


class SignedReads:
    """Of one bucket, for any number of threads. A connection serves one request at a time, of any thread."""

    def __init__(
        self, client: "S3Client", *, bucket: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._bucket, self._clock = client, bucket, clock
        self._addresses: dict[str, tuple[float, SplitResult]] = {}
        self._idle: list[_Closing] = []
        self._refusals = 0

    def read(self, key: str, span: Span) -> Body | None:
        """None: ask boto3."""
        if self._refusals >= _REFUSALS or not self._is_direct:
            return None
        try:
            body = self._read(key, span)
        except (BotoCoreError, ClientError, HTTPException, OSError):
            body = None
        if body is None:
            self._addresses.pop(key, None)
        return body

    @cached_property
    def _is_direct(self) -> bool:
        """The addresses are S3's usual ones, and no proxy is on the way to them."""
        proxies = get_environ_proxies(self._client.meta.endpoint_url)
        return not proxies and not self._bucket.endswith(DIRECTORY_BUCKET)

    def _read(self, key: str, span: Span) -> Body | None:
        address = self._address(key)
        connection, answer = self._answered(address, span)
        told = answer.getheader("Content-Range")
        if answer.status != _PARTIAL or not span.is_told_by(told, answer.length):
            self._refusals += answer.status in _CLIENT_ERRORS
            return None
        content = answer.read()
        self._idle.append(connection)
        self._refusals = 0
        return Body(content=content, etag=answer.getheader("ETag"))

    def _address(self, key: str) -> SplitResult:
        until, address = self._addresses.get(key, (0.0, None))
        if address is None or self._clock() >= until:
            until = self._clock() + _USED_SECONDS
            signed = self._client.generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=_SIGNED_SECONDS
            )
            address = urlsplit(signed)
            self._addresses[key] = until, address
        return address

    def _answered(self, address: SplitResult, span: Span) -> tuple[_Closing, HTTPResponse]:
        with suppress(IndexError):
            kept = self._idle.pop()
            # The other side ends connections that were idle: that is no fault.
            with suppress(HTTPException, OSError):
                return kept, _asked(kept.http, address, span)
        connection = _Closing(self._connected(address))
        return connection, _asked(connection.http, address, span)

    def _connected(self, address: SplitResult) -> HTTPConnection:
        assert address.hostname is not None
        if address.scheme == "http":
            return HTTPConnection(address.hostname, address.port, timeout=TIMEOUT_SECONDS)
        return HTTPSConnection(
            address.hostname, address.port, timeout=TIMEOUT_SECONDS, context=self._certificates
        )

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        """Those that boto3 trusts."""
        configured = botocore.session.get_session().get_config_variable("ca_bundle")
        trusted = str(configured or get_cert_path(verify=True))
        is_folder = Path(trusted).is_dir()
        return ssl.create_default_context(
            cafile=None if is_folder else trusted, capath=trusted if is_folder else None
        )


def _asked(connection: HTTPConnection, address: SplitResult, span: Span) -> HTTPResponse:
    headers = {"Range": span.range} | ({"If-Match": span.etag} if span.etag else {})
    connection.request("GET", f"{address.path}?{address.query}", headers=headers)
    return connection.getresponse()
