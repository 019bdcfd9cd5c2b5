"""Read ranges of objects over plain connections, by addresses that boto3 has signed.

A GET of 1 MiB by boto3 takes 1.7 ms of CPU, three quarters of them for work that is the same for each
request. A signed address serves all ranges of its object, so that only the transfer is left. Any answer that
is not the requested range gives None: then boto3 reads it, with its retries, renewed credentials and errors.
"""

import ssl
import time
from collections.abc import Callable, Iterator, Sequence
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
"""Ending of the names of S3 Express buckets, whose requests only boto3 can sign."""
_SIGNED_SECONDS, _USED_SECONDS = 900, 600
"""Seconds that an address is valid, and that it is used; it ends no later than the key that signed it."""
_REFUSALS = 3
"""Refused addresses in a row after which boto3 alone reads."""
_PARTIAL = 206
_CLIENT_ERRORS = range(300, 500)
_FAILURES = (BotoCoreError, ClientError, HTTPException, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Bytes of an object, of one version of it if that is known."""

    offset: int
    size: int
    etag: str | None

    @property
    def range(self) -> str:
        return f"bytes={self.offset}-{self.offset + self.size - 1}"

    def is_answered_by(self, content_range: str | None, length: int | None) -> bool:
        """Tell whether an answer has these bytes, or those of them that the object has.

        Args:
            content_range: The answer's header.
            length: Bytes of the answer's body.
        """
        unit, _, answer = (content_range or "").partition(" ")
        bounds, _, whole = answer.partition("/")
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
    """A connection that is closed when nothing keeps it any more: after an error, or with its reader."""

    def __init__(self, connection: HTTPConnection) -> None:
        self.http = connection

    def __del__(self) -> None:
        self.http.close()


class SignedReads:
    """Reads from one bucket, for any number of threads. A connection serves one request at a time."""

    def __init__(
        self, client: "S3Client", *, bucket: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._bucket, self._clock = client, bucket, clock
        self._addresses: dict[str, tuple[float, SplitResult]] = {}
        self._idle: list[_Closing] = []
        self._refusals = 0

    def read(self, key: str, span: Span) -> Body | None:
        """Return the bytes of a range; None if boto3 must read it."""
        if self._refusals >= _REFUSALS or not self._is_direct:
            return None
        try:
            body = self._read(key, span)
        except _FAILURES:
            body = None
        if body is None:
            self._addresses.pop(key, None)
        return body

    def stream(self, key: str, span: Span, sizes: Sequence[int]) -> Iterator[bytes]:
        """Yield parts of a range as they arrive; end early if boto3 must read what is left."""
        if self._refusals >= _REFUSALS or not self._is_direct:
            return
        try:
            connection, answer = self._answered(self._address(key), span)
            if self._is_refused(answer, span):
                self._addresses.pop(key, None)
                return
            for size in sizes:
                part = answer.read(size)
                if len(part) < size:
                    return
                yield part
            answer.read()  # ends the answer, so that the connection takes the next request
        except _FAILURES:
            self._addresses.pop(key, None)
            return
        self._idle.append(connection)
        self._refusals = 0

    @cached_property
    def _is_direct(self) -> bool:
        """Whether the addresses are S3's usual ones, and no proxy is on the way to them."""
        proxies = get_environ_proxies(self._client.meta.endpoint_url)
        return not proxies and not self._bucket.endswith(DIRECTORY_BUCKET)

    def _read(self, key: str, span: Span) -> Body | None:
        address = self._address(key)
        connection, answer = self._answered(address, span)
        if self._is_refused(answer, span):
            return None
        content = answer.read()
        self._idle.append(connection)
        self._refusals = 0
        return Body(content=content, etag=answer.getheader("ETag"))

    def _is_refused(self, answer: HTTPResponse, span: Span) -> bool:
        """Tell, and count, whether an answer is not the requested range."""
        content_range = answer.getheader("Content-Range")
        if answer.status == _PARTIAL and span.is_answered_by(content_range, answer.length):
            return False
        self._refusals += answer.status in _CLIENT_ERRORS
        return True

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
        """Certificates that boto3 trusts."""
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
